"""Masses, lifts and sinks: found where they were planted, with statistics that equal those of the whole rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from deixis.activations import Run, RunError, record
from deixis.analyses.attention_map import attention_map
from deixis.analyses.attention_sinks import find_sinks, threshold_for
from deixis.analyses.attention_summary import AttentionSummary, attention_summary
from deixis.benchmarks import Items
from deixis.hooks import AttentionPlan, AttentionRows
from deixis.models import VLM
from tests.toys import D_MODEL, toy_image, toy_item, toy_vlm

DECODER_DIM, TOWER_DIM = 5, 9
DECODER_TOKEN, TOWER_TOKEN = 1, 2
"""Which of each picture's four tokens is made a sink by the decoder, and which by the vision tower."""


def items() -> Items:
    return Items(
        toy_item(k, id=f"toy/{k}", language=("en", "ja")[k % 2], groups={"scene": f"scene-{k // 2}"}, objects=toy_item(0).objects)
        for k in range(6)
    )


def with_sinks(vlm: VLM) -> list[Any]:
    """Massive activations, added from block 0 on at the first token and one image token, and in the tower at another."""

    def in_decoder(_module: Any, _args: Any, output: Tensor) -> Tensor:
        ids = planted_at[0]
        for row in range(len(ids)):
            image = (ids[row] == vlm.image_token_id).nonzero()[:, 0]
            if not len(image):  # what is read behind the prompt, to score an option
                continue
            first = int((ids[row] != vlm.tokenizer.pad_token_id).int().argmax())
            output[row, [first, int(image[DECODER_TOKEN])], DECODER_DIM] += 4000
        return output

    def in_tower(_module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        rows = args[0].clone()
        # Pictures of four tokens, each of which four rows feed.
        rows.reshape(-1, 4, 4, rows.shape[-1])[:, TOWER_TOKEN, 0, TOWER_DIM] += 4000
        return (rows, *args[1:])

    def note(_module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        planted_at[0] = kwargs["input_ids"]

    planted_at: list[Tensor] = [torch.zeros(0)]
    return [
        vlm.model.register_forward_pre_hook(note, with_kwargs=True),
        vlm.blocks[0].register_forward_hook(in_decoder),
        vlm.merger_module.register_forward_pre_hook(in_tower),
    ]


@pytest.fixture(scope="module")
def vlm() -> VLM:
    model = toy_vlm()
    with_sinks(model)
    return model


@pytest.fixture(scope="module")
def run(vlm: VLM, tmp_path_factory: pytest.TempPathFactory) -> Run:
    plan = AttentionPlan(queries=("answer", "text"))
    return record(vlm, items(), tmp_path_factory.mktemp("runs") / "run", attention=plan, answers=False, progress=False)


@pytest.fixture(scope="module")
def summary(run: Run) -> AttentionSummary:
    return attention_summary(run)


def test_planted_sinks_are_found_and_their_births_told_apart(run: Run) -> None:
    sinks = find_sinks(run.attention())
    assert sinks.dims == (DECODER_DIM,)
    place = np.arange(len(sinks.vision_born)) % 4
    np.testing.assert_array_equal(sinks.vision_born, place == TOWER_TOKEN)
    np.testing.assert_array_equal(sinks.decoder_born, (place == DECODER_TOKEN)[:, None] & (np.arange(3) > 0))
    assert "6 of 24 image tokens are sinks from the vision tower, 6 become sinks in the decoder (in the dimensions 5;" in str(
        sinks
    )


def test_a_model_without_massive_activations_has_no_sink(tmp_path: Path) -> None:
    run = record(toy_vlm(), items(), tmp_path / "run", attention=True, answers=False, progress=False)
    sinks = find_sinks(run.attention())
    assert not sinks.either.any()
    assert sinks.dims == ()
    frame = attention_summary(run).to_frame()
    assert (frame["sink_mass"] == 0).all()


def test_the_threshold_is_within_reach_of_every_width() -> None:
    assert threshold_for(4096) == 20
    assert threshold_for(D_MODEL) == pytest.approx(0.75 * D_MODEL**0.5)


def test_statistics_with_and_without_sinks_are_those_of_the_whole_rows(vlm: VLM, summary: AttentionSummary) -> None:
    chosen = list(items())
    inputs = vlm.prepare(chosen)
    with torch.no_grad(), AttentionRows(vlm) as watch:
        watch.follow(inputs, chosen)
        vlm.reset()
        vlm.model(**inputs)
        rows = watch.read()
    roles = {name: mask.numpy() for name, mask in vlm.token_roles(inputs, chosen).items()}
    real = inputs["attention_mask"].bool().numpy()
    for layer, found in rows.items():
        for number in range(len(chosen)):
            image = np.flatnonzero(roles["image"][number])
            sinks = [image[TOWER_TOKEN]] + ([image[DECODER_TOKEN]] if layer else [])
            row = found[number][:, 0].double().numpy()
            kept = real[number] & ~roles["bos"][number]
            kept[sinks] = False
            rest = row[:, kept].sum(axis=-1)
            p = row[:, kept] / rest[:, None]
            entropy = -(p * np.log(p)).sum(axis=-1) / np.log(kept.sum())
            in_object, in_image = roles["object"][number][kept], roles["image"][number][kept]
            expected = {
                "sink_mass": row[:, sinks].sum(axis=-1),
                "vision_sink_mass": row[:, sinks[0]],
                "decoder_sink_mass": row[:, sinks[1:]].sum(axis=-1),
                "bos_mass": row[:, roles["bos"][number]].sum(axis=-1),
                "entropy_without_sinks": entropy,
                "image_mass_without_sinks": p[:, in_image].sum(axis=-1),
                "object_mass_without_sinks": p[:, in_object].sum(axis=-1),
                "object_lift_without_sinks": p[:, in_object].sum(axis=-1) / (in_object.sum() / kept.sum()),
            }
            for name, value in expected.items():
                seen = summary.statistic(name)[number, layer]
                if name.endswith("without_sinks"):
                    enough = rest > 0.05
                    value, seen = value[enough], seen[enough]
                np.testing.assert_allclose(seen, value, atol=4e-3, rtol=2e-2, err_msg=f"{name} {layer} {number}")


def test_the_frame_has_the_columns_of_the_design_first(summary: AttentionSummary) -> None:
    frame = summary.to_frame()
    design = (
        "model item site layer head query entropy max_weight bos_mass sink_mass image_mass image_lift object_mass object_lift"
    )
    assert list(frame.columns[:15]) == [*design.split(), "text_mass"]
    assert len(frame) == 6 * 3 * 4 * 2
    row = frame[(frame["item"] == "toy/3") & (frame["layer"] == 2) & (frame["head"] == 1) & (frame["query"] == "text")].iloc[0]
    assert row["image_mass"] == pytest.approx(summary.statistic("image_mass", "text")[3, 2, 1])
    assert np.isnan(row["entropy_without_sinks"]), "text has many queries"


def test_means_are_those_of_the_frame(summary: AttentionSummary) -> None:
    frame = summary.to_frame()
    answer = frame[frame["query"] == "answer"]
    means = summary.mean(by=("layer", "language", "query"))
    japanese = answer[answer["item"].isin([f"toy/{k}" for k in (1, 3, 5)])]
    expected = japanese.groupby("layer")["object_lift"].mean()
    found = means[(means["language"] == "ja") & (means["query"] == "answer")].set_index("layer")["object_lift"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(ValueError, match=r"by=\('item',\) must be names out of: layer, head, language, condition, query"):
        summary.mean(by=("item",))
    with pytest.raises(ValueError, match="no item is in the condition 'blank'; this run has: real"):
        summary.mean(condition="blank")


def test_by_distance_holds_the_mean_of_each_distance(summary: AttentionSummary) -> None:
    frame = summary.by_distance("object_mass")
    one = frame[(frame["layer"] == 1) & (frame["distance_m"] == frame["distance_m"].min())].iloc[0]
    assert one["mean"] == pytest.approx(float(summary.statistic("object_mass")[0, 1].mean()))
    assert one["low"] <= one["mean"] <= one["high"]


def test_a_map_holds_the_weights_of_one_head(run: Run) -> None:
    found = attention_map(run, "toy/2", layer=1, head=3)
    frame = found.to_frame()
    np.testing.assert_array_equal(frame["weight"], run.attention().maps()[8:12, 1, 3].astype(float))
    assert frame["object"].tolist() == [True, False, False, False]
    mean = attention_map(run, 2, layer=1)
    np.testing.assert_allclose(mean.weights, run.attention().maps()[8:12, 1].astype(float).mean(axis=1))
    for wrong, words in (
        ({"item": "toy/9"}, "item='toy/9' is not in this run, which has 6 items"),
        ({"layer": 7}, "layer=7 was not recorded at attention; this run holds: 0, 1, 2"),
        ({"head": 9}, "head=9 is not at layer 1, which has the heads 0 to 3"),
        ({"picture": 1}, "has no picture 1; it has 1"),
    ):
        arguments = {"item": "toy/2", "layer": 1, "head": 0} | wrong
        with pytest.raises(RunError, match=words):
            attention_map(run, **arguments)
    assert toy_image(0).size == (64, 64)
