"""From a probe to the answer: pico holds how far the disk is; does moving that move what it says?

Run as it stands, about a minute on two cores:  python examples/edits.py
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import deixis as dx


def main(folder: Path) -> None:
    vlm = dx.load("pico")
    items = dx.memory_game(languages=("en",), size=256)

    # 1. Probe: at the answer position, before the last block, a linear probe reads the distance.
    run = dx.record(vlm, items, folder / "pico", answers=False)
    layer = vlm.n_layers - 1
    sweep = dx.layer_sweep(run, target="distance_m", layers=[layer], controls=("interval",))
    print(sweep.to_frame()[["layer", "metric", "score", "low", "high"]].round(2).to_string(index=False))

    # 2. Steer: move what the probe reads, one metre at a time, in scenes half-way along the desk.
    way = dx.probe_direction(run, "distance_m", layer=layer)
    colour = dx.contrast_direction(run, "colour", "red", "blue", layer=layer)
    middle = items.filter(lambda item: item.targets["distance_m"] == 1.5)[:8]
    steered = dx.steer_sweep(vlm, middle, way, doses=(-1.5, -0.75, 0.0, 0.75, 1.5), unrelated=colour)

    # 3. Answer: how often it says "this", along the probe's direction and along others of the same length.
    frame = steered.to_frame()
    this = frame[frame["metric"] == "prob:this"].pivot_table(index="direction", columns="dose", values="effect", sort=False)
    print("\nP(this) by dose in metres:")
    print(this.round(2).to_string())
    print("\nChange of the logit difference per metre:")
    print(steered.slopes()[["direction", "slope", "low", "high"]].round(2).to_string(index=False))

    # 4. The same question asked the other way: put a near scene's tokens into a far one.
    patches = dx.patch_sweep(vlm, dx.near_far_pairs(languages=("en",), n=3, size=256), roles=("object", "answer"))
    rows = patches.to_frame().query("metric == 'restored' and contrast == 'distance'")
    print("\nShare of the near scene's answer that a patch restores, by layer:")
    print(
        rows.dropna(subset="layer").pivot_table(index="role", columns="layer", values="effect", sort=False).round(2).to_string()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp()))
