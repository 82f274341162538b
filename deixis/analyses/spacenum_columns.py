"""The twenty columns of SpaceNum's results table (arXiv 2605.23898, Table 2), in its order, and the published numbers."""

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

DIRECTIONS = {"num2space": "Num2Space", "space2num": "Space2Num"}
PAIRS = ("move F/B", "move L/R", "rotate U/D", "rotate L/R")
MAPS = ("1D", "2D", "3D")
SCALES = {"D": "desk", "R": "room"}


@dataclass(frozen=True)
class TableColumn:
    """One column of the table."""

    kind: str
    """``transition`` or ``layout``."""
    direction: str
    name: str
    """The ``column`` in the groups of items: ``move F/B``, ``1D D``."""
    n_options: int
    n_published: int
    """Items in the published benchmark."""

    @property
    def key(self) -> str:
        """The column's name in frames and in the published file: ``num2space move F/B``."""
        return f"{self.direction} {self.name}"

    @property
    def chance(self) -> float:
        """The expected accuracy of random letters."""
        return 1 / self.n_options


def _transition(direction: str) -> tuple[TableColumn, ...]:
    return tuple(TableColumn("transition", direction, pair, 4, 100) for pair in PAIRS)


def _layout(direction: str) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn("layout", direction, f"{name} {scale}", 2 if name == "1D" else 4, 100 if scale == "D" else 400)
        for name in MAPS
        for scale in SCALES
    )


COLUMNS: tuple[TableColumn, ...] = tuple(
    column for made in (_transition, _layout) for direction in DIRECTIONS for column in made(direction)
)
AVERAGE = "Avg"


def published_scores() -> "pd.DataFrame":
    """The published accuracies of 18 models, in percent: ``model rank avg`` and a column for each of :data:`COLUMNS`."""
    import pandas as pd

    with files("deixis.analyses").joinpath("data/spacenum_published.csv").open("rb") as file:
        return pd.read_csv(file)


def published_means() -> "pd.DataFrame":
    """The published averages beside those of the published columns.

    Returns:
        ``model printed recomputed difference`` (percent) for the plain mean of the 20 columns, and the means of the halves over
        items, which is what the paper's blind test starts from: ``transition``, ``layout`` (each column weighted by its items).
    """
    import pandas as pd

    frame = published_scores()
    keys = [column.key for column in COLUMNS]
    found = pd.DataFrame({"model": frame["model"], "printed": frame["avg"], "recomputed": frame[keys].mean(axis=1)})
    found["difference"] = found["recomputed"] - found["printed"]
    for kind in ("transition", "layout"):
        own = [column for column in COLUMNS if column.kind == kind]
        total = sum(column.n_published for column in own)
        found[kind] = sum(frame[column.key] * column.n_published for column in own) / total
    return found


def repeated_scores(frame: "pd.DataFrame", least: int = 3) -> "pd.DataFrame":
    """Values that several models share to the last digit in a column: the sign of one constant answer.

    Args:
        frame: With ``model`` and columns of :data:`COLUMNS`, such as :func:`published_scores`.
        least: Fewest models that count.

    Returns:
        ``column value n_models models``, most models first. In a column of 100 items some models agree by accident, so that only
        values far from chance, or the same models in several columns, say anything.
    """
    import pandas as pd

    rows = []
    for column in COLUMNS:
        if column.key in frame:
            for value, models in frame.groupby(column.key)["model"]:
                if len(models) >= least:
                    rows.append((column.key, value, len(models), ", ".join(models)))
    found = pd.DataFrame(rows, columns=["column", "value", "n_models", "models"])
    return found.sort_values("n_models", ascending=False, kind="stable", ignore_index=True)
