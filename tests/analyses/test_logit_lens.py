"""The lens on vectors whose logits are known, and on a real (tiny) model's run."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

import deixis as dx
from deixis.analyses.logit_lens import COLUMNS, logit_lens, plot_logit_lens
from deixis.benchmarks import Items, Option
from deixis.models import VLM
from tests.analyses.fake_run import FakeRun
from tests.toys import toy_items, toy_model, toy_processor

ITEMS = dx.memory_game(languages=("en", "ja"), shapes=("star",), size=64)
WIDTH, VOCABULARY, LAST = 6, 40, 2
RNG = np.random.default_rng(0)


class FakeVLM(VLM):
    """A norm and a head with numbers of their own; each form is a token by a table."""

    n_layers = LAST
    d_model = WIDTH
    head = None
    tokenizer = SimpleNamespace(decode=lambda tokens: "".join(f"<{token}>" for token in tokens))
    __setattr__ = object.__setattr__

    def __init__(self, head: torch.Tensor, tokens: dict[str, int], cap: float | None = None) -> None:
        self.head, self.tokens, self.cap = head, tokens, cap
        self.name, self.asked = "fake", 0

    def __repr__(self) -> str:
        return "FakeVLM()"

    def first_tokens(self, option: Option) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.tokens[form] for form in option.forms))

    def logits_of(self, resid: torch.Tensor, tokens) -> torch.Tensor:
        self.asked = max(self.asked, len(tokens))
        normed = resid / resid.pow(2).mean(-1, keepdim=True).sqrt()
        values = normed @ self.head[list(tokens)].T
        return values if self.cap is None else self.cap * torch.tanh(values / self.cap)


def fake_vlm(cap: float | None = None) -> FakeVLM:
    forms = list(dict.fromkeys(form for item in ITEMS for option in item.options for form in option.forms))
    # " This" and "This" are one token here, as in tokenizers that add a space of their own: it must not count twice.
    tokens = {form: list(dict.fromkeys(f.strip() for f in forms)).index(form.strip()) for form in forms}
    return FakeVLM(torch.tensor(RNG.normal(size=(VOCABULARY, WIDTH)), dtype=torch.float32), tokens, cap)


def expected_logits(vlm: FakeVLM, resid: np.ndarray) -> list[float]:
    """By numpy, item by item, over the whole vocabulary."""
    found = []
    for row, item in zip(resid.astype(float), ITEMS, strict=True):
        every = vlm.head.numpy().astype(float) @ (row / np.sqrt(np.mean(row**2)))
        every = every if vlm.cap is None else vlm.cap * np.tanh(every / vlm.cap)
        found += [logsumexp([every[t] for t in {vlm.tokens[f] for f in option.forms}]) for option in item.options]
    return found


def planted(vlm: FakeVLM, role: str = "answer") -> FakeRun:
    features = {(role, layer): RNG.normal(size=(len(ITEMS), WIDTH)).astype(np.float32) for layer in range(LAST + 1)}
    rows = [(item.id, option.label) for item in ITEMS for option in item.options]
    own = dict(zip(rows, expected_logits(vlm, features[role, LAST]), strict=True))
    return FakeRun(ITEMS, lambda item: {o.label: np.exp(own[item.id, o.label]) for o in item.options}, features, offset=False)


@pytest.mark.parametrize("cap", [None, 2.0])
def test_every_layer_gives_the_logsumexp_over_an_options_first_tokens(cap):
    vlm = fake_vlm(cap)
    run = planted(vlm)
    result = logit_lens(run, vlm)
    frame = result.to_frame()
    assert tuple(frame) == COLUMNS
    assert result.checked
    for layer in range(LAST + 1):
        part = frame[frame["layer"] == layer]
        np.testing.assert_allclose(part["logit"], expected_logits(vlm, run.features["answer", layer]), rtol=1e-5, atol=1e-5)
        assert part["item"].tolist() == run.options["item"].tolist()
        assert part["option"].tolist() == run.options["option"].tolist()


def test_only_the_options_tokens_are_read_from_the_head():
    vlm = fake_vlm()
    logit_lens(planted(vlm), vlm)
    assert vlm.asked == len({"This", "this", "That", "that", "この", "その", "あの"})


def test_probabilities_and_ranks_are_among_the_items_own_options():
    vlm = fake_vlm()
    frame = logit_lens(planted(vlm), vlm).to_frame()
    for _, part in frame.groupby(["layer", "item"]):
        weights = np.exp(part["logit"] - part["logit"].max())
        np.testing.assert_allclose(part["prob"], weights / weights.sum())
        assert part.sort_values("logit", ascending=False)["rank"].tolist() == list(range(1, len(part) + 1))


def test_a_last_layer_that_is_not_the_models_is_refused_with_its_item():
    vlm = fake_vlm()
    run = planted(vlm)
    run.features["answer", LAST][7] *= -1
    with pytest.raises(ValueError, match=f"of item '{ITEMS[7].id}', where the model's own logit is"):
        logit_lens(run, vlm)


@pytest.mark.parametrize("fault", ["cap", "norm twice", "nan"])
def test_the_usual_mistakes_show_in_the_last_layer(fault):
    vlm = fake_vlm(cap=2.0)
    run = planted(vlm)
    if fault == "cap":
        vlm.cap = None
    elif fault == "nan":
        run.features["answer", LAST][0] = np.nan
    else:
        scale = torch.linspace(0.5, 2, WIDTH)
        vlm.head = vlm.head * scale
    with pytest.raises(ValueError, match="at the last layer the lens reads"):
        logit_lens(run, vlm)


def test_another_width_is_refused():
    vlm = fake_vlm()
    run = planted(vlm)
    vlm.d_model = 8
    with pytest.raises(ValueError, match="vectors of width 6 and 'fake' has width 8"):
        logit_lens(run, vlm)


def test_another_role_is_read_without_the_check_and_missing_rows_stay_nan():
    vlm = fake_vlm()
    run = planted(vlm, role="object")
    run.features["object", 1][3] = np.nan
    result = logit_lens(run, vlm, role="object")
    frame = result.to_frame()
    assert not result.checked
    gone = frame[(frame["item"] == ITEMS[3].id) & (frame["layer"] == 1)]
    assert gone[["logit", "prob"]].isna().all().all()
    assert frame["logit"].isna().sum() == len(gone)


def test_options_that_share_a_first_token_are_left_out_and_named():
    vlm = fake_vlm()
    run = planted(vlm)
    for form, token in vlm.tokens.items():
        vlm.tokens[form] = 39 if form.strip() in ("この", "その") else token
    result = logit_lens(run, vlm)
    assert result.left_out == tuple(item.id for item in ITEMS if item.language == "ja")
    assert set(result.to_frame()["item"]) == {item.id for item in ITEMS if item.language == "en"}
    vlm.tokens = dict.fromkeys(vlm.tokens, 3)
    with pytest.raises(ValueError, match="no lens can tell them apart"):
        logit_lens(run, vlm)


def test_the_last_layer_of_a_real_run_is_the_models_own(tmp_path):
    vlm = dx.wrap(toy_model(toy_processor()), toy_processor())
    items = toy_items()
    run = dx.record(vlm, items, tmp_path / "run", roles=("answer",), answers=False, progress=False)
    result = logit_lens(run, vlm)
    frame = result.to_frame()
    assert result.checked
    last = frame[frame["layer"] == vlm.n_layers]
    assert len(last)
    own = run.options.set_index(["item", "option"])["logit"]
    got = last.set_index(["item", "option"])["logit"]
    np.testing.assert_allclose(got, own.loc[got.index], rtol=1e-4, atol=1e-4)
    with torch.inference_mode():
        # Second route: the whole vocabulary through the model's own modules.
        full = vlm.head(vlm.final_norm(torch.from_numpy(run.resid(1)))).numpy()
    first = frame[frame["layer"] == 1].iloc[0]
    number = [item.id for item in items].index(first["item"])
    option = next(o for o in items[number].options if o.label == first["option"])
    assert first["logit"] == pytest.approx(logsumexp(full[number, list(vlm.first_tokens(option))]), abs=1e-4)
    other = dx.wrap(toy_model(toy_processor(), seed=1), toy_processor())
    with pytest.raises(ValueError, match="pass the model that was recorded"):
        logit_lens(run, other)


def test_the_plot_shows_the_median_of_each_region():
    vlm = fake_vlm()
    result = logit_lens(planted(vlm), vlm)
    ax = result.plot()
    frame = result.to_frame()
    regions = {item.id: item.targets["region"] for item in ITEMS}
    rows = frame[frame["term"] == "proximal"].assign(region=lambda f: f["item"].map(regions))
    assert [line.get_label() for line in ax.lines] == ["region 1", "region 2", "region 3"]
    for region, line in enumerate(ax.lines, 1):
        expected = [np.median(rows[(rows["region"] == region) & (rows["layer"] == layer)]["prob"]) for layer in range(LAST + 1)]
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert "layer" in ax.get_xlabel()
    assert len(plot_logit_lens(frame, option="distal").lines) == 1
    with pytest.raises(ValueError, match="option='middle' is not one of: 'proximal', 'distal', 'medial', 'this'"):
        plot_logit_lens(frame, option="middle")


def test_two_layers_recorded_out_of_many_keep_their_numbers():
    vlm = fake_vlm()
    vlm.n_layers = 9
    run = planted(vlm)
    run.features = {("answer", {0: 2, 1: 5, 2: 9}[layer]): rows for (_, layer), rows in run.features.items()}
    result = logit_lens(run, vlm)
    assert result.layers == (2, 5, 9)
    assert sorted(set(result.to_frame()["layer"])) == [2, 5, 9]
    assert result.checked
    assert not logit_lens(
        replace(run, items=Items(ITEMS), features={k: v for k, v in run.features.items() if k[1] < 9}), vlm
    ).checked
