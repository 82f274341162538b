"""The table of families, derived from the records; ``deixis families`` and the documentation show the same."""

from collections.abc import Sequence
from dataclasses import dataclass

from deixis.models.families import FAMILIES, LEFT_OUT, Family


@dataclass(frozen=True)
class FamilyRow:
    """What one record says, in words."""

    models: str
    architecture: str
    image_tokens: str
    """Where pictures enter the decoder."""
    attention: str
    """Kinds of attention in the decoder's blocks."""
    lacks: str
    """Sites that it has not."""
    quirks: str
    """What else differs from the usual."""
    checked_with: str


def family_rows() -> list[FamilyRow]:
    """A row per record, in the order of the records."""
    return [
        FamilyRow(
            models=family.name,
            architecture=family.architecture,
            image_tokens="in the sequence" if family.image_tokens == "sequence" else "read by cross-attention",
            attention=", ".join(family.attention),
            lacks=", ".join(_lacking(family)) or "-",
            quirks="; ".join(_quirks(family)) or "-",
            checked_with=family.checked_with or "a tiny random model",
        )
        for family in FAMILIES.values()
    ]


def _lacking(family: Family) -> list[str]:
    lacking = ["vision"] if family.vision_blocks is None else []
    return lacking + (["merger_in", "merger_out"] if family.merger is None else [])


def _quirks(family: Family) -> list[str]:
    """The record's odd fields, in words."""
    said = {
        "M-RoPE": family.keeps_positions is not None,
        "layers that do not run without a picture": family.optional_layers is not None,
        "no prompt without a picture": family.needs_picture,
        "batches only of items with equally many pictures": not family.mixes_counts,
        "linear attention, without the site head": "linear_attn" in family.attention,
        "needs trust_remote_code=True": family.remote_code,
        "written without a chat template": family.prompt is not None,
        "vision features can't be reused": not family.vision_cache,
        f"positions from {family.first_position}": family.first_position != 0,
    }
    return [words for words, holds in said.items() if holds]


HEADINGS = {"models": "Models", "architecture": "Class", "lacks": "Sites it lacks", "quirks": "What else differs"}


def family_markdown() -> str:
    """The table of the documentation, and the families that are left out."""
    rows = [[getattr(row, name) for name in HEADINGS] for row in family_rows()]
    for row in rows:
        row[1] = f"`{row[1]}`"
    left_out = [[name, f"{why}."] for name, why in LEFT_OUT.items()]
    return f"{_table(list(HEADINGS.values()), rows)}\n\n### Left out\n\n{_table(['Models', 'Why'], left_out)}\n"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
