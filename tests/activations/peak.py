"""Record many items and say how much memory that took at its peak: ``python -m tests.activations.peak FOLDER N``, in bytes."""

import resource
import sys
from pathlib import Path

import deixis as dx
from deixis.benchmarks.images import UniformImage
from tests.toys import SIDE, THIS_THAT, toy_item, toy_vlm


def main(folder: Path, n: int) -> None:
    items = dx.Items(
        toy_item(number, images=(UniformImage(width=SIDE, height=SIDE, grey=number % 256),), options=THIS_THAT, objects=())
        for number in range(n)
    )
    run = dx.record(toy_vlm(), items, folder, roles=("answer", "image"), max_new_tokens=2, progress=False)
    if run.resid(1).shape[0] != n:
        raise SystemExit("items are missing")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
