"""Runs that do not belong together, and pictures that a split by scene would put on both of its sides."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from deixis.analyses import layer_sweep, transfer
from deixis.analyses.run_checks import refuse_shared_pictures
from deixis.benchmarks import Items, memory_game
from deixis.benchmarks.images import FileImage, UniformImage
from tests.analyses.written_scenes import WrittenScenes, written_scenes

WIDTH = 6
FAST = {"n_bootstrap": 0}
QUICK = {"controls": (), "workers": 1}


def coded(item, layer):
    return item.targets["distance_m"] * layer * np.eye(WIDTH)[0]


def network(weights: str, path: str, *, seed: int = 0, prefix: str = "", **settings) -> WrittenScenes:
    run = written_scenes(coded, seed=seed)
    run.info |= {"weights": weights, "dtype": "float32", "revision": None} | settings
    run.path = Path(path)
    run.items = Items(
        replace(i, id=prefix + i.id, benchmark=prefix or "a", groups=i.groups | {"scene": prefix + i.groups["scene"]})
        for i in run.items
    )
    return run


def pictured(run: WrittenScenes, shared: tuple[str, str] | None = None) -> WrittenScenes:
    """Each scene with a file of its own; the second of the two named scenes shows the file of the first."""
    shown = {i.groups["scene"]: i.groups["scene"] for i in run.items}
    if shared:
        shown[shared[1]] = shared[0]
    run.items = Items(replace(i, images=(FileImage(path=Path(shown[i.groups["scene"]] + ".png")),)) for i in run.items)
    return run


@pytest.mark.parametrize(
    ("settings", "differs"),
    [({"weights": "two"}, "weights"), ({"dtype": "bfloat16"}, "dtype"), ({"revision": "main"}, "revision")],
)
def test_networks_that_share_a_name_are_not_pooled(settings, differs):
    one = network("one", "runs/a")
    other = network(**({"weights": "one", "path": "runs/b", "seed": 1, "prefix": "b"} | settings))
    with pytest.raises(ValueError, match=f"the runs runs/a and runs/b share the name 'written' but differ in {differs}"):
        transfer([one, other], "distance_m", by="benchmark", **FAST)
    same = network("one", "runs/b", seed=1, prefix="b")
    assert len(transfer([one, same], "distance_m", by="benchmark", **FAST).cells) == 12


def test_vectors_of_different_widths_are_not_pooled():
    one, other = network("one", "runs/a"), network("one", "runs/b", seed=1, prefix="b")
    other.rows = {key: np.pad(rows, ((0, 0), (0, 2))) for key, rows in other.rows.items()}
    with pytest.raises(ValueError, match="have vectors of 6 and 8 numbers at resid layer 0; pass runs of one network"):
        transfer([one, other], "distance_m", by="benchmark", **FAST)


def test_a_picture_in_two_scenes_is_refused_by_transfer_and_sweep():
    said = (
        "'4/en/demonstrative/real' and '7/en/demonstrative/real' show the same picture but have scene 'scene 004' and 'scene 007'"
    )
    twice = pictured(written_scenes(coded, languages=("en", "ja")), ("scene 004", "scene 007"))
    with pytest.raises(ValueError, match=said):
        transfer(twice, "distance_m", **FAST)
    with pytest.raises(ValueError, match=f"{said}.* give them one scene"):
        layer_sweep(twice, "distance_m", **QUICK)
    once = pictured(written_scenes(coded, languages=("en", "ja")))
    assert len(transfer(once, "distance_m", **FAST).cells) == 12
    assert layer_sweep(once, "distance_m", **QUICK).best().layer == 1


def test_a_picture_in_two_runs_under_two_scene_names_is_refused():
    one, other = pictured(network("one", "runs/a")), network("one", "runs/b", prefix="b")
    other.items = Items(replace(i, images=one.items[n].images) for n, i in enumerate(other.items))
    with pytest.raises(ValueError, match="show the same picture but have scene 'scene 000' and 'bscene 000'"):
        transfer([one, other], "distance_m", by="benchmark", **FAST)


def test_blank_and_absent_pictures_are_no_leak_and_nothing_is_drawn(monkeypatch):
    real = memory_game(languages=("en", "ja"), shapes=("star", "cross"), size=256)
    everything = list(real + real.with_condition("blank") + real.with_condition("black") + real.with_condition("text_only"))
    monkeypatch.setattr("deixis.benchmarks.images.draw", None)
    refuse_shared_pictures(everything, "scene")
    grey = [replace(i, images=(UniformImage(width=8, height=8),), condition="blank") for i in real]
    refuse_shared_pictures(grey, "scene")
    copied = replace(real[0], id="copy", groups=real[0].groups | {"scene": "copy"})
    with pytest.raises(ValueError, match="and 'copy' show the same picture"):
        refuse_shared_pictures([*everything, copied], "scene")


def test_a_file_is_known_by_its_hash_wherever_it_lies():
    item = next(iter(written_scenes(coded).items))
    a, b = (replace(item, images=(FileImage(path=Path(p), expected="abc"),), groups={"scene": p}) for p in ("a", "b"))
    with pytest.raises(ValueError, match="have scene 'a' and 'b'"):
        refuse_shared_pictures([a, b], "scene")


def test_the_run_itself_is_no_untrained_run():
    run, again = network("one", "runs/a"), network("one", "runs/again")
    with pytest.raises(ValueError, match=r"untrained=runs/a holds the trained weights of runs/a; record dx.untrained\(vlm\)"):
        layer_sweep(run, "distance_m", controls=("untrained",), untrained=run, workers=1)
    with pytest.raises(ValueError, match="untrained=runs/again holds the trained weights of runs/a"):
        layer_sweep(run, "distance_m", controls=("untrained",), untrained=again, workers=1)
    bare = written_scenes(coded)
    with pytest.raises(ValueError, match="holds the trained weights"):
        layer_sweep(bare, "distance_m", controls=("untrained",), untrained=bare, workers=1)


def test_an_untrained_run_of_another_architecture_is_refused():
    run, other = network("one", "runs/a", d_model=6), network("two", "runs/u", d_model=8)
    with pytest.raises(ValueError, match=r"untrained=runs/u has the d_model 8 and runs/a 6; record dx.untrained\(vlm\)"):
        layer_sweep(run, "distance_m", controls=("untrained",), untrained=other, workers=1)


def test_an_untrained_run_that_was_asked_something_else_is_refused():
    run, other = network("one", "runs/a"), network("two", "runs/u")
    assert layer_sweep(run, "distance_m", controls=("untrained",), untrained=other, workers=1).cells
    other.items = Items(replace(i, prompt="How far?") if i.id.startswith("7/") else i for i in other.items)
    with pytest.raises(ValueError, match="item '7/en/demonstrative/real' has another prompt in the untrained run"):
        layer_sweep(run, "distance_m", controls=("untrained",), untrained=other, workers=1)


def test_an_unknown_nuisance_is_the_same_in_both_runs():
    run, other = network("one", "runs/a"), network("two", "runs/u")
    for one in (run, other):
        one.items = Items(replace(i, nuisances={"object_row": float("nan")}) for i in one.items)
    wanted = {"controls": ("untrained",), "nuisances": (), "workers": 1}
    assert layer_sweep(run, "distance_m", untrained=other, **wanted).cells


def blank_of(run: WrittenScenes) -> WrittenScenes:
    run.items = Items(replace(i, id=f"{i.id}+blank", condition="blank") for i in run.items)
    return run


def test_blank_pictures_are_shown_to_the_same_network():
    run, wanted = network("one", "runs/a"), {"controls": ("blank",), "workers": 1}
    assert layer_sweep(run, "distance_m", blank=blank_of(network("one", "runs/b")), **wanted).cells
    with pytest.raises(ValueError, match="blank=runs/b differs from runs/a in weights; record the blank pictures with the same"):
        layer_sweep(run, "distance_m", blank=blank_of(network("two", "runs/b")), **wanted)


def test_blank_pictures_stand_for_the_same_scenes():
    run = network("one", "runs/a")
    with pytest.raises(ValueError, match="blank=runs/b holds other scenes than runs/a"):
        layer_sweep(run, "distance_m", blank=blank_of(network("one", "runs/b", seed=1)), controls=("blank",), workers=1)


@pytest.mark.parametrize("layers", [[0, 7], [7], []])
def test_transfer_refuses_a_layer_that_was_not_recorded(layers):
    with pytest.raises(ValueError, match=r"must be some of those recorded at resid: 0, 1"):
        transfer(written_scenes(coded, languages=("en", "ja")), "distance_m", layers=layers, **FAST)


def test_transfer_of_no_run_says_so():
    with pytest.raises(ValueError, match="no run was given; pass one run, or several"):
        transfer([], "distance_m", **FAST)


@pytest.mark.parametrize("path", ["runs/x", Path("runs/x")])
def test_a_path_is_told_how_to_become_a_run(path):
    said = r"'runs/x' is a path, not a run; open it with dx.open_run\('runs/x'\)"
    for given in (path, [path]):
        with pytest.raises(TypeError, match=said):
            transfer(given, "distance_m", **FAST)
    run = SimpleNamespace()
    for wrong in ({"run": path}, {"run": run, "untrained": path}, {"run": run, "blank": path}):
        with pytest.raises(TypeError, match=said):
            layer_sweep(**wrong, target="distance_m")
