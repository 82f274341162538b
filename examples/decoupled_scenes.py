"""What travels with distance, in one camera and in decoupled scenes: the table and the contact sheet of docs/items.md."""

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import deixis as dx

matplotlib.use("Agg")
SEEN = ["object_row", "object_area", "brightness", "x_m"]
LATENT = ["camera_focal", "size_m", "camera_pitch", "horizon_row", "camera_height", "camera_setback"]


def dependence(items: dx.Items) -> pd.DataFrame:
    """Pearson's and Spearman's correlation of every nuisance with distance."""
    frame = items.to_frame()
    names = [name for name in SEEN + LATENT if name in frame]
    return pd.DataFrame({how: frame[names].corrwith(frame["distance_m"], method=how) for how in ("pearson", "spearman")})


def contact_sheet(items: dx.Items, path: Path) -> None:
    """The scenes nearest to twelve corners: three distances down, low and high, small and large across."""
    frame = items.to_frame()
    columns = ["distance_m", "object_row", "object_area"]
    corners = [(d, r, a) for d in (0.3, 1.5, 2.7) for r in (0.3, 0.7) for a in (0.0085, 0.0135)]
    figure = Figure(figsize=(8, 6.5), layout="constrained")
    for ax, corner in zip(figure.subplots(3, 4).flat, corners, strict=True):
        away = ((frame[columns] - list(corner)) / frame[columns].std()).pow(2).sum(axis=1)
        item = items[int(np.argmin(away))]
        ax.imshow(item.images[0].load())
        ax.set_title(
            f"{item.targets['distance_m']:.2f} m, row {item.nuisances['object_row']:.2f}, {item.nuisances['object_area']:.1%}",
            fontsize=8,
        )
        ax.axis("off")
    figure.savefig(path, dpi=110, pil_kwargs={"quality": 85})


if __name__ == "__main__":
    n, out = (int(sys.argv[1]) if len(sys.argv) > 1 else 600), Path(sys.argv[2] if len(sys.argv) > 2 else "decoupled.jpg")
    decoupled = dx.memory_game(decouple=True, n=n, languages=("en",), size=256)
    table = dependence(dx.memory_game(n=n, languages=("en",), size=256)).add_prefix("one camera, ")
    print(table.join(dependence(decoupled).add_prefix("decoupled, "), how="right").round(2).to_string(na_rep=""))
    contact_sheet(decoupled, out)
    print(f"{out}: {len(dx.counter_heuristic(decoupled))} of {n} scenes contradict the rule that higher is farther")
