"""Which layers of pico hold distance, and what else could have given the scores: about a minute on two cores.

Run it anywhere: python examples/probing.py [FOLDER]
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure

import deixis as dx


def main(folder: Path) -> None:
    vlm = dx.load("pico")

    # Real and blank pictures in one run, the real ones again through random weights.
    real = dx.memory_game(languages=("en", "ja"))
    run = dx.record(vlm, real + real.with_condition("blank"), folder / "pico", answers=False)
    random = dx.record(dx.untrained(vlm), real, folder / "pico-untrained", answers=False)

    sweep = dx.layer_sweep(run, "distance_m", controls="all", untrained=random, progress=True)
    columns = ["layer", "score", "low", "high", "control", "p_value", "nuisance", "untrained", "blank", "bits"]
    frame = sweep.to_frame().query("metric == 'r2'")
    print(frame[columns].round(2).to_string(index=False))
    print(sweep.best())
    save(sweep, folder / "sweep.png")

    # Image height and size alone give distance away in these scenes. Where they do not, what is left?
    apart = dx.memory_game(languages=("en",), decouple=True, n=60)
    decoupled = dx.record(vlm, apart, folder / "pico-decoupled", answers=False)
    left = dx.layer_sweep(decoupled, "distance_m", controls=("nuisance", "residual", "permutation"))
    print(left.best())
    print(
        left.to_frame()
        .query("metric == 'r2'")[["layer", "score", "nuisance", "residual", "p_value"]]
        .round(2)
        .to_string(index=False)
    )

    # Does what is learned in one language hold in the other? At image tokens the question is refused as trivial.
    save(dx.transfer(run, "distance_m", by="language"), folder / "languages.png")
    try:
        dx.transfer(run, "distance_m", by="language", role="object")
    except ValueError as refused:
        print(f"refused: {refused}")

    # Interpolation and extrapolation, the shape of the code, and where things are put.
    save(dx.transfer(decoupled, "distance_m", by="distance", role="object"), folder / "distances.png")
    code = dx.distance_code(decoupled, role="object")
    print(code, code.shrinkage, sep="\n")
    save(code, folder / "code.png")
    save(dx.decode_coordinates(run), folder / "from-above.png")
    save(dx.probe_geometry(run, "distance_m", by="layer"), folder / "layers.png")
    print(f"figures in {folder}")


def save(result: object, path: Path) -> None:
    figure = Figure(layout="constrained", figsize=(6.4, 4.0))
    result.plot(figure.add_subplot())  # type: ignore[attr-defined]
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "probing"))
