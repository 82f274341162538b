import base64
import io
import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from deixis.analyses.findings import Findings, best_rows, find, lens_of_terms, mean_by_region
from deixis.analyses.layer_sweep import layer_sweep
from deixis.analyses.report import checked_path, render, report, run_facts, write_report
from deixis.analyses.report_figures import behaviour_panels, lens_panels, sweep_panels
from deixis.analyses.report_scenes import data_address, example_scenes
from deixis.analyses.report_sections import Section
from deixis.analyses.report_tables import grid, shown, spans
from deixis.benchmarks import Item, Items, memory_game
from tests.analyses.fake_run import FakeRun, by_term, right_answer

HOSTILE = "<img src=x onerror=alert(1)> $x$ {{ 7*7 }}"
NEAR, FAR = {"proximal": 0.9, "medial": 0.06, "distal": 0.04}, {"proximal": 0.1, "medial": 0.25, "distal": 0.65}


def asked() -> Items:
    shapes = ("star", "cross", "circle", "square", "triangle")
    real = memory_game(
        tasks=("demonstrative", "distance"), languages=("en", "ja"), shapes=shapes, colours=("red", "blue"), size=32
    )
    return real + real.with_condition("blank")


def shares(item: Item, uses_distance: bool) -> dict[str, float]:
    if item.truth is not None:
        return {o.label: 0.8 if o.label == item.truth else 0.1 for o in item.options}
    terms = NEAR if item.targets["region"] == 1 or not uses_distance or item.condition == "blank" else FAR
    total = sum(terms[o.term] for o in item.options if o.term)
    return by_term(item, {term: share / total for term, share in terms.items()})


def vectors(items: Items, seed: int) -> dict[tuple[str, int], np.ndarray]:
    """Distance at layer 1, nothing at layer 0."""
    rng = np.random.default_rng(seed)
    noise = {(role, layer): rng.normal(size=(len(items), 4)) for role in ("answer", "object") for layer in (0, 1)}
    distance = np.array([item.targets["distance_m"] for item in items])
    for role in ("answer", "object"):
        noise[role, 1][:, 0] = 5 * distance + 0.1 * noise[role, 1][:, 0]
    return noise


@dataclass
class ReportRun(FakeRun):
    path: Path = field(default_factory=Path)

    @property
    def settings(self) -> dict[str, Any]:
        more = {"family": "Fake", "n_layers": 1, "d_model": 4, "weights": "abcdef0123456789", "items": "fedcba9876543210"}
        more |= {"attention_implementation": "sdpa", "device": "cpu", "sites": ["resid"], "libraries": {"torch": "2.0"}}
        return super().settings | more


def make_run(folder: Path, name: str, uses_distance: bool, seed: int) -> ReportRun:
    items = asked()
    (folder / "run.json").write_text("{}")
    answers = ["<script>alert(2)</script>" if i.language == "ja" else right_answer(i) for i in items]
    return ReportRun(
        items=items,
        shares=lambda item: shares(item, uses_distance),
        features=vectors(items, seed),
        answers=answers,
        model=name,
        path=folder,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ReportRun]:
    folder = tmp_path_factory.mktemp("run")
    return [make_run(folder, "follows", True, 0), make_run(folder, HOSTILE, False, 1)]


@pytest.fixture(scope="module")
def findings(runs: list[ReportRun]) -> Findings:
    return find(runs, reference="synthetic")


@pytest.fixture(scope="module")
def page(findings: Findings) -> str:
    return render(findings)


class Reader(HTMLParser):
    """Tags with their attributes, and the cells of every table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.text: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._in_cell:
            self.tables[-1][-1][-1] += data


def table_under(page: str, heading: str) -> pd.DataFrame:
    """The table that has a column ``heading``."""
    for rows in Reader(page).tables:
        if heading in rows[0]:
            return pd.DataFrame(rows[1:], columns=rows[0])
    raise AssertionError(f"no table has a column {heading!r}")


def test_the_conclusions_stand_first_in_the_gaps_own_words(page: str, findings: Findings):
    text = "".join(Reader(page).text)
    for name in findings.models:
        assert findings.gap.conclusion(name) in text
    assert text.index("verdict") < text.index(findings.gap.conclusion("follows")) < text.index("Where distance can be read")
    assert "its demonstratives follow it" in findings.gap.conclusion("follows")
    assert "its demonstratives do not follow it" in findings.gap.conclusion(HOSTILE)


def test_nothing_is_loaded_from_elsewhere(page: str):
    for tag, attributes in Reader(page).tags:
        assert tag not in ("script", "link", "iframe", "object", "embed")
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/jpeg;base64,")), value
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "default-src 'none'" in page


def test_names_and_answers_from_outside_stay_text(page: str):
    reader = Reader(page)
    assert not [tag for tag, attributes in reader.tags if tag == "script" or "onerror" in attributes]
    assert HOSTILE in "".join(reader.text)
    assert "<script>alert(2)</script>" in "".join(reader.text)


def test_the_score_table_holds_the_scores(page: str, findings: Findings):
    table = table_under(page, "JS distance")
    mean = findings.scores[findings.scores["region"] == "mean"]
    assert list(table["JS distance"].astype(float)) == list(mean["js_distance"].round(2))
    assert list(table["language"]) == ["English", "Japanese"] * 2
    assert list(table["recognised"]) == ["30 / 30", "0 / 30"] * 2
    assert list(table["distance right"]) == ["100%", "0%"] * 2


def test_the_verdicts_are_the_gaps(page: str, findings: Findings):
    table = table_under(page, "verdict")
    assert list(table["verdict"]) == list(findings.gap.to_frame()["case"])
    assert set(table["encoded"]) == {"yes"}


def test_the_best_layer_is_the_one_that_holds_distance(page: str):
    table = table_under(page, "held out")
    assert set(table["layer"]) == {"1"}
    assert (table.loc[table["metric"] == "R2", "score"].astype(float) > 0.9).all()


def test_every_figure_says_what_it_shows(page: str):
    figures = [attributes for tag, attributes in Reader(page).tags if tag == "svg"]
    labels = [attributes.get("aria-label") or "" for attributes in figures]
    assert sum("by layer" in label and " at the " in label for label in labels) == 4, "two targets at two roles"
    assert sum("share of the proximal term" in label for label in labels) == 2, "two languages"
    assert sum("log-odds of the distal" in label for label in labels) == 2, "two models"
    assert all(len(attributes.get("aria-label") or "") > 20 for attributes in figures)
    assert all(attributes.get("alt") for tag, attributes in Reader(page).tags if tag == "img")


def test_ids_are_used_once(page: str):
    ids = [attributes["id"] for _, attributes in Reader(page).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_lens_that_is_missing_is_said(page: str, findings: Findings):
    assert set(findings.without_lens) == {"follows", HOSTILE}
    assert "No lens for follows: the model is neither bundled nor a folder" in "".join(Reader(page).text)


def test_the_synthetic_speaker_is_never_called_human(page: str, findings: Findings):
    assert "It is not human data" in page
    assert "It is not human data" not in render(replace(findings, reference=None))


def test_a_reference_is_taken_by_itself_for_the_bundled_models_only(runs: list[ReportRun], monkeypatch: pytest.MonkeyPatch):
    from deixis.analyses.findings import _reference

    assert _reference(runs, "auto") is None
    assert _reference(runs, "people.csv") == "people.csv"
    monkeypatch.setattr("deixis.models.BUNDLED", {"follows": Path(), HOSTILE: Path()})
    assert _reference(runs, "auto") == "synthetic"


def test_scenes_show_one_figure_at_three_distances_and_the_models_shares(runs: list[ReportRun]):
    scenes = example_scenes(runs)
    assert [scene.alt for scene in scenes] == [f"red star, {distance} m away" for distance in ("0.25", "1.50", "2.75")]
    near, _, far = (next(q for q in scene.questions if (q.task, q.language) == ("demonstrative", "en")) for scene in scenes)
    assert [a.shares for a in near.answers if a] == ["this 96%, that 4%"] * 2
    assert [a.shares for a in far.answers if a] == ["this 13%, that 87%", "this 96%, that 4%"]
    assert {a.verdict for a in near.answers if a} == {""}
    japanese = next(q for q in scenes[0].questions if q.language == "ja")
    assert {a.verdict for a in japanese.answers if a} == {"unreadable"}


def test_an_item_that_one_run_lacks_is_not_asked(runs: list[ReportRun]):
    short = replace(runs[1], items=runs[1].items[:1], answers=runs[1].answers[:1])
    second = [question.answers[1] for scene in example_scenes([runs[0], short]) for question in scene.questions]
    assert [answer is not None for answer in second].count(True) == 1


def test_pictures_are_in_the_page_and_small(runs: list[ReportRun]):
    address = data_address(runs[0].items[0].images[0])
    picture = Image.open(io.BytesIO(base64.b64decode(address.split(",")[1])))
    assert picture.size == (32, 32)


def test_what_was_run_names_items_versions_and_time(runs: list[ReportRun]):
    facts = run_facts(runs[0])
    assert facts["items"].startswith("120 real, 120 blank; 30 scenes; fingerprint fedcba987654")
    assert facts["versions"] == "torch 2.0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", facts["recorded"])


def test_a_report_that_fails_leaves_the_old_one_and_nothing_else(
    findings: Findings, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(import_module("deixis.analyses.report"), "render", lambda _: page)
    path = write_report(findings, tmp_path / "new" / "report.html")
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(findings, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_is_refused_before_anything_is_computed(tmp_path: Path):
    with pytest.raises(IsADirectoryError, match="is a folder; name a file for the report"):
        report([], tmp_path)
    assert checked_path(tmp_path / "a.html") == tmp_path / "a.html"


def test_no_run_and_two_runs_of_one_model_are_refused(runs: list[ReportRun], tmp_path: Path):
    with pytest.raises(ValueError, match="there is no run to report on"):
        report([], tmp_path / "a.html")
    with pytest.raises(ValueError, match="two of the runs are of the model 'follows'"):
        report([runs[0], runs[0]], tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_best_rows_are_the_sweeps_rows_at_the_layer_that_best_names(runs: list[ReportRun]):
    sweep = layer_sweep(runs[0], "distance_m", n_bootstrap=0)
    rows, best = best_rows(sweep), sweep.best()
    frame = sweep.to_frame()
    assert list(rows["metric"]) == ["r2", "mae"]
    assert set(rows["layer"]) == {best.layer}
    expected = frame[(frame["layer"] == best.layer) & (frame["metric"] == "r2")]["score"].item()
    assert rows["score"].iloc[0] == expected
    assert rows["held_out"].iloc[0] == best.score
    assert np.isnan(rows["held_out"].iloc[1])


def lens_frame(items: Items) -> pd.DataFrame:
    """Probability of each option: 0.1 a layer and 0.2 a region for the first term, the rest for the others."""
    rows = []
    for item in items:
        for layer in (0, 1):
            first = 0.1 * layer + 0.2 * item.targets["region"]
            for number, option in enumerate(item.options):
                prob = first if number == 0 else (1 - first) / (len(item.options) - 1)
                rows.append(("m", item.id, layer, "answer", option.label, option.term, prob))
    return pd.DataFrame(rows, columns=["model", "item", "layer", "role", "option", "term", "prob"])


def test_the_lens_is_averaged_over_real_items_of_a_region():
    items = asked()
    frame = lens_frame(items)
    frame.loc[frame["item"].str.endswith("+blank"), "prob"] = 9.0  # must not be counted
    means = mean_by_region(lens_of_terms(frame, items))
    row = means[(means["language"] == "ja") & (means["term"] == "proximal") & (means["layer"] == 1) & (means["region"] == 3)]
    assert row["prob"].item() == pytest.approx(0.7)
    assert set(means["term"]) == {"proximal", "medial", "distal"}


def test_the_lens_panel_says_where_the_regions_end():
    items = asked()
    (panel,) = lens_panels(lens_of_terms(lens_frame(items), items))
    assert panel.alt.endswith("ending at 0.30 in region 1, 0.50 in region 2, 0.70 in region 3.")


def test_without_a_lens_there_is_no_panel():
    assert lens_panels(pd.DataFrame()) == []


def test_sweep_panels_name_the_highest_score_of_each_model(findings: Findings):
    panels = sweep_panels(findings.sweeps)
    r2 = findings.sweeps.query("model == 'follows' and target == 'distance_m' and role == 'answer' and metric == 'r2'")
    assert f"follows reaches {r2['score'].max():.2f} at layer 1" in panels[0].alt


def test_behaviour_panels_name_the_proximal_shares(findings: Findings):
    panels = behaviour_panels(findings.distributions)
    assert panels[0].alt.startswith("English: share of the proximal term in regions 1, 2, 3: follows 96%, 13%, 13%;")


def test_missing_values_are_dashes_and_numbers_have_true_minus_signs():
    assert [shown(v) for v in (None, float("nan"), True, False, -0.126, 3, "x")] == ["–", "–", "yes", "no", "−0.13", "3", "x"]
    frame = pd.DataFrame({"low": [0.1, np.nan], "high": [0.25, np.nan]})
    assert spans(frame) == ["0.10 to 0.25", "–"]
    assert shown(-0.004) == "0.00", "a minus before nothing says nothing"


def test_no_p_value_is_shown_as_nothing():
    frame = pd.DataFrame({"used_p": [0.0005, 0.03], "p_value": [0.004, 1.0], "score": [0.0005, 0.5]})
    rows = grid(frame, {name: name for name in frame}, "A caption.").rows
    assert [row.cells for row in rows] == [("< 0.01", "< 0.01", "0.00"), ("0.03", "1.00", "0.50")]


def test_the_planted_verdicts_are_found(findings: Findings):
    frame = findings.gap.to_frame()
    asked_for = frame[frame["task"] == "demonstrative"]
    assert list(asked_for["case"]) == ["encoded and used"] * 2 + ["encoded, unused"] * 2


def test_sweeps_of_too_few_scenes_are_left_out_and_named(tmp_path: Path):
    whole = make_run(tmp_path, "small", True, 0)
    keep = [n for n, item in enumerate(whole.items) if item.groups["figure"] == "red star"]
    small = replace(
        whole,
        items=Items([whole.items[n] for n in keep]),
        features={key: rows[keep] for key, rows in whole.features.items()},
        answers=[whole.answers[n] for n in keep],
    )
    text = "".join(Reader(report([small], tmp_path / "small.html").read_text()).text)
    assert "No sweep of distance_m at answer for small: there are 3 groups for 5 folds; use n_folds=3 at most" in text
    assert "Missing evidence: probe at answer (there are 3 groups for 5 folds)" in text


def test_further_sections_stand_in_the_page_with_heading_lead_table_and_notes(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
):
    frame = pd.DataFrame({"model": ["a"], "entropy": [0.25]})
    made = Section(
        heading="Heads & more", lead="It is 0.25.", grids=(grid(frame, {"entropy": "entropy"}, "A caption."),), notes=("No b.",)
    )
    monkeypatch.setattr("deixis.analyses.report_sections.SECTIONS", (lambda _: made,))
    shown_page = render(findings)
    for words in (
        "<h2>Heads &amp; more</h2>",
        '<p class="lead">It is 0.25.</p>',
        "A caption.",
        '<p class="soft">No b.</p>',
        "0.25</th>",
    ):
        assert words in shown_page
