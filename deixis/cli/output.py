"""What the commands of an analysis print and write."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from deixis.console import Outcome

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@runtime_checkable
class AnyResult(Protocol):
    """What every analysis returns."""

    def to_frame(self) -> "pd.DataFrame":
        """One row per number."""
        ...

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The frame as a picture."""
        ...


def answered(result: AnyResult, out: Path | None, shown: tuple[Any, ...], data: dict[str, Any]) -> Outcome:
    """The outcome of an analysis, written to ``out`` too if that is asked for."""
    if out is not None:
        _write(result, out)
        shown = (*shown, "", f"written: {out}")
    return Outcome(data, shown)


def _write(result: AnyResult, path: Path) -> None:
    if path.suffix == ".csv":
        result.to_frame().to_csv(path, index=False)
        return
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.use("agg")  # nothing is shown, so that no window system is needed
    result.plot()  # on a figure of the size that it needs, which is then the current one
    plt.savefig(path, dpi=200)
    plt.close("all")


def filled(frame: "pd.DataFrame", headings: dict[str, str]) -> dict[str, str]:
    """The columns that hold anything: what was not asked for is no column of dashes."""
    return {name: heading for name, heading in headings.items() if frame[name].notna().any()}


def spread(frame: "pd.DataFrame", column: str, heading: str) -> "pd.DataFrame":
    """One column for each value of ``column``."""
    rest = [name for name in frame.columns if name not in (column, "prob")]
    wide = frame.pivot(index=rest, columns=column, values="prob").reset_index()
    return wide.rename(columns=lambda name: heading.format(name) if isinstance(name, int) else name)
