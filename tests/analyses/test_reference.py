"""Reference files: what is refused, and what is only doubted."""

import pytest

from deixis.analyses.reference import Cell, ReferenceFileError, ReferenceWarning, check_against_people, read_reference
from deixis.benchmarks.speaker import SYNTHETIC_SPEAKER

TERMS = {code: tuple(regions[1]) for code, regions in SYNTHETIC_SPEAKER.items()}
SPEAKER = {
    (code, region): Cell(shares, 100.0) for code, regions in SYNTHETIC_SPEAKER.items() for region, shares in regions.items()
}


def csv_of(reference) -> str:
    rows = [f"{c},{r},{term},{share},{cell.n:g}" for (c, r), cell in reference.items() for term, share in cell.shares.items()]
    return "language,region,term,proportion,n\n" + "\n".join(rows) + "\n"


def test_a_file_is_read_with_and_without_a_byte_order_mark(tmp_path):
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "people.csv").write_text(csv_of(SPEAKER), encoding)
        assert read_reference(tmp_path / "people.csv", TERMS) == SPEAKER


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf-16", r"people.csv is in UTF-16; save it as CSV in UTF-8"),
        ("utf-16-le", r"line 1 holds null characters, as UTF-16 does"),
        ("shift-jis", r"line 3 is not in UTF-8 \(the byte 0x82\); save the file as CSV in UTF-8"),
    ],
)
def test_another_encoding_is_named_with_its_line(tmp_path, encoding, message):
    text = csv_of(SPEAKER).replace("en,1,distal", "en,1,その")
    (tmp_path / "people.csv").write_bytes(text.encode(encoding))
    with pytest.raises(ReferenceFileError, match=message):
        read_reference(tmp_path / "people.csv", TERMS)


def test_the_speaker_contradicts_nothing_that_is_known():
    assert check_against_people(SPEAKER, "x.csv") == []


def changed(language, region, **shares):
    return SPEAKER | {(language, region): Cell(shares, 100.0)}


@pytest.mark.parametrize(
    ("reference", "doubted"),
    [
        (changed("zh", 2, proximal=0.75, distal=0.25), ["proximal term of zh should fall", "distal term of zh should rise"]),
        (changed("zh", 2, proximal=0.70, distal=0.30), ["proximal term of zh should fall", "distal term of zh should rise"]),
        (
            changed("ko", 3, proximal=0.10, medial=0.42, distal=0.48),
            ["distal term of ko should rise with the region and goes 0.05, 0.5"],
        ),
        (
            changed("ja", 2, proximal=0.40, medial=0.35, distal=0.25),
            ["most frequent terms of ja should go proximal, medial, distal and go proximal, proximal, distal"],
        ),
        (
            changed("en", 1, proximal=0.999, distal=0.001) | {("en", 3): Cell({"proximal": 0.001, "distal": 0.999}, 9.0)},
            ["en should be closer to uniform than ko and lies 0.3"],
        ),
    ],
)
def test_what_contradicts_the_human_study_is_a_warning(tmp_path, reference, doubted):
    said = check_against_people(reference, "x.csv")
    assert len(said) == len(doubted)
    for sentence, part in zip(said, doubted, strict=True):
        assert part in sentence
    (tmp_path / "people.csv").write_text(csv_of(reference), "utf-8")
    with pytest.warns(ReferenceWarning, match="the human study says so in words, so check the file"):
        read_reference(tmp_path / "people.csv", TERMS)


def test_other_languages_and_missing_regions_are_not_doubted():
    other = {("es", region): Cell({"proximal": 0.1, "medial": 0.1, "distal": 0.8}, 9.0) for region in (1, 2, 3)}
    assert check_against_people(other | {("ja", 1): Cell({"proximal": 0.1, "medial": 0.1, "distal": 0.8}, 9.0)}, "x.csv") == []
