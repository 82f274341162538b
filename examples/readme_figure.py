"""The README's picture, from the runs of `deixis demo`: same knowledge, different use.

python examples/readme_figure.py deixis-demo docs/images/demo.png
"""

import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

import deixis as dx
from deixis.analyses import plot_behaviour, plot_layer_sweep

MODELS = ("pico", "pico-collapsed")
LANGUAGES = ("en", "ja")


def draw(folder: Path, role: str = "object") -> Figure:
    """Left: how well distance is decoded from each layer. Right: the demonstratives of near, middle and far scenes."""
    runs = [dx.open_run(folder / name) for name in MODELS]
    sweeps = pd.concat([dx.layer_sweep(run, "distance_m", role=role).to_frame() for run in runs], ignore_index=True)
    terms = pd.concat([dx.behaviour(run).to_frame() for run in runs], ignore_index=True)
    figure = Figure(figsize=(10.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    plot_layer_sweep(sweeps, left)
    left.set_title("Both hold distance", loc="left", weight="bold")
    plot_behaviour(terms[terms["language"].isin(LANGUAGES)], right)
    right.set_title("One of them speaks by it", loc="left", weight="bold", pad=24)
    return figure


if __name__ == "__main__":
    mpl.use("Agg")
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(source).savefig(target, dpi=160)
    print(target)
