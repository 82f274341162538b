"""The tuned lens and direct logit attribution: against the model's own numbers, and on every family."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deixis.analyses.attribution import COLUMNS, attribution
from deixis.analyses.tuned_lens import tuned_lens
from deixis.models import FAMILIES
from tests.analyses.pico_run import pico, pico_run
from tests.models.tiny import TINY, tiny_vlm
from tests.toys import SHARED_START, toy_item

EVERY = [name for name in FAMILIES if name in TINY]


@pytest.fixture(scope="module")
def lens():
    return tuned_lens(pico_run(), pico())


def test_the_fit_and_the_test_share_no_scene(lens):
    items = {item.id: item.groups["scene"] for item in pico_run().items}
    tested = {items[name] for name in lens.options()["item"]}
    assert not tested & set(lens.fitted)
    assert len(tested) + len(lens.fitted) == 60


def test_the_tuned_lens_lies_nearer_to_the_final_distribution_than_the_plain_one(lens):
    kl = lens.to_frame().pivot_table(index="layer", columns="lens", values="kl")
    assert (kl.loc[:5, "tuned"] < kl.loc[:5, "plain"]).all()
    assert kl.loc[0, "tuned"] > 10 * kl.loc[3, "tuned"]  # before the picture is read there is nothing to translate
    np.testing.assert_allclose(kl.loc[6], 0, atol=1e-9)


def test_the_divergence_is_scipys(lens):
    from scipy.stats import entropy

    run, vlm = pico_run(), pico()
    items = list(run.items)
    rows = [n for n, item in enumerate(items) if item.groups["scene"] not in lens.fitted]
    plain, final = (torch.from_numpy(run.resid(layer)[rows]) for layer in (3, 6))
    translator = torch.from_numpy(np.eye(vlm.d_model) + lens.matrix[3])
    tuned = (plain.double() @ translator + torch.from_numpy(lens.bias[3])).float()
    p, *others = (vlm.logits(x).double().softmax(dim=-1).numpy() for x in (final, tuned, plain))
    for name, q in zip(("tuned", "plain"), others, strict=True):
        expected = np.mean([entropy(a, b, base=2) for a, b in zip(p, q, strict=True)])
        frame = lens.to_frame()
        found = frame[(frame["lens"] == name) & (frame["layer"] == 3)]["kl"].iloc[0]
        assert found == pytest.approx(expected, rel=1e-3)


def test_the_options_at_the_last_layer_are_the_models_own(lens):
    run = pico_run()
    own = run.options.set_index(["item", "option"])["logit"]
    last = lens.options().query("layer == 6").set_index(["item", "option"])
    np.testing.assert_allclose(last["logit"], own.loc[last.index], atol=1e-3)
    np.testing.assert_allclose(last["prob"], last["plain_prob"], atol=1e-6)


def test_a_lens_that_can_not_be_fitted_is_refused(lens):
    with pytest.raises(ValueError, match="other weights than those of pico-collapsed"):
        tuned_lens(pico_run(), pico("pico-collapsed"))
    with pytest.raises(ValueError, match="role='object' holds a mean over tokens"):
        tuned_lens(pico_run(), pico(), role="object")
    with pytest.raises(ValueError, match=r"60 scenes and share=0\.01 leave 1 for the fit"):
        tuned_lens(pico_run(), pico(), share=0.01)
    assert lens.plot().lines[0].get_ydata()[0] == lens.to_frame()["kl"].iloc[0]


@pytest.mark.parametrize("architecture", EVERY)
def test_the_parts_add_up_to_the_whole(architecture):
    vlm = tiny_vlm(architecture)
    items = [toy_item(0), toy_item(1)]
    found = attribution(vlm, items)
    frame = found.to_frame()
    assert tuple(frame) == COLUMNS
    sums = frame[frame["part"] != "head"].groupby("item", sort=False)["effect"].sum()
    whole = frame.groupby("item", sort=False)["difference"].first()
    np.testing.assert_allclose(sums, whole, atol=1e-4)
    with torch.inference_mode():
        logits = vlm.model(**vlm.prepare(items), use_cache=False).logits[:, -1].double()
    vlm.reset()
    cap = getattr(vlm.text_config, "final_logit_softcapping", None) if vlm.family.soft_caps else None
    logits = logits if cap is None else cap * torch.atanh(logits / cap)
    own = [[float(row[list(vlm.first_tokens(o))].max()) for o in item.options] for row, item in zip(logits, items, strict=True)]
    np.testing.assert_allclose(whole, [near - far for near, far in own], atol=1e-3)


def test_heads_add_up_to_their_attention():
    frame = attribution(pico(), pico_run().items[:6]).to_frame()
    heads = frame[frame["part"] == "head"].groupby(["item", "layer"])["effect"].sum()
    attention = frame[frame["part"] == "attention"].set_index(["item", "layer"])["effect"]
    np.testing.assert_allclose(heads, attention.loc[heads.index], atol=1e-5)
    assert frame[frame["part"] == "head"]["head"].nunique() == pico().n_heads


def test_blocks_with_norms_behind_their_parts_are_not_split():
    gemma = next((name for name in EVERY if name.startswith("Gemma3For")), None)
    if gemma is None:
        pytest.skip("no tiny Gemma 3")
    found = attribution(tiny_vlm(gemma), [toy_item(0)])
    assert not found.split
    assert set(found.to_frame()["part"]) == {"embedding", "block", "bias"}
    assert attribution(pico(), pico_run().items[:1]).split


def test_the_bars_are_means_over_items():
    found = attribution(pico(), pico_run().items[:6])
    frame = found.to_frame()
    ax = found.plot()
    expected = frame[(frame["part"] == "attention")].groupby("layer")["effect"].mean()
    np.testing.assert_allclose([bar.get_height() for bar in ax.containers[0]], expected)


def test_items_that_can_not_be_attributed_are_refused():
    with pytest.raises(ValueError, match="there is no item"):
        attribution(pico(), [])
    with pytest.raises(ValueError, match="begin with the same token"):
        attribution(tiny_vlm("Qwen3VLForConditionalGeneration"), [replace(toy_item(0), options=SHARED_START)])
