"""Where a model looks, and whether its attention has collapsed: statistics, kinds, and one head's map over a scene.

Runs as it stands on the bundled models in a minute: python examples/attention.py
"""

from pathlib import Path
from tempfile import mkdtemp

from matplotlib.figure import Figure

import deixis as dx


def main(model: str = "pico") -> None:
    """Record attention, print what was found, write three figures."""
    out = Path(mkdtemp(prefix="deixis-attention-"))
    items = dx.memory_game(languages=("en", "ja"), n=24)
    run = dx.record(dx.load(model), items + items.with_condition("blank"), out / "run", attention=dx.AttentionPlan(vision=True))

    summary = dx.attention_summary(run)
    print(summary.mean(by=("layer",))[["layer", "entropy", "bos_mass", "image_mass", "object_mass", "object_lift"]].round(2))
    print(summary.sinks)

    collapse = dx.attention_collapse(run)
    print(collapse)
    heads = collapse.to_frame()
    best = heads[heads["image_mass"] > 0.1].sort_values("matched_low").iloc[-1]
    print(
        f"Head {best['head']} of layer {best['layer']} puts {best['matched_lift']:.1f} [{best['matched_low']:.1f}, "
        f"{best['matched_high']:.1f}] times as much weight on the object as on the same places in other scenes."
    )
    print(collapse.likeness().round(2))

    scene = next(item for item in run.items if item.condition == "real")
    on_scene = dx.attention_map(run, scene.id, int(best["layer"]), int(best["head"]))
    for name, result in {"object-lift": summary, "collapse": collapse, "map": on_scene}.items():
        figure = Figure(layout="constrained")
        result.plot(figure.add_subplot())
        figure.savefig(out / f"{name}.png", dpi=150)
    print(f"Figures: {out}")


if __name__ == "__main__":
    main()
