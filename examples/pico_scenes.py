"""Scenes for training ``pico``: drawn once, kept as one array of pictures and one of labels.

Every factor varies continuously, the camera a little too, so that nothing but looking at the picture gives the answer. The seed
stream is the training set's own: ``dx.memory_game`` never draws from it.
"""

import multiprocessing
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from deixis.benchmarks.render import FAST, SHAPES, Camera, Figure, draw, memory_scene
from deixis.benchmarks.render.memory_scene import INKS

SIZE = 256
SEED = (2607, 7251)
COLOURS = tuple(INKS)
LABELS = np.dtype([("shape", "i1"), ("colour", "i1"), ("distance_m", "f4"), ("x_m", "f4")])


def random_scene(number: int) -> tuple[Figure, Camera, int]:
    """Figure, camera and drawing size of training scene ``number``."""
    rng = np.random.default_rng((*SEED, number))
    figure = Figure(
        shape=SHAPES[rng.integers(len(SHAPES))],
        colour=COLOURS[rng.integers(len(COLOURS))],
        # Far figures are the smallest and hardest, so that they come more often.
        distance_m=float(rng.uniform(0.22, 2.9) if rng.random() < 0.7 else rng.uniform(1.9, 2.9)),
        x_m=float(rng.uniform(-0.16, 0.16)),
        brightness=float(rng.uniform(0.85, 1.1)),
    )
    camera = Camera(
        height_m=1.6 + float(rng.uniform(-0.03, 0.03)),
        setback_m=0.7 + float(rng.uniform(-0.03, 0.03)),
        pitch_deg=-44.0 + float(rng.uniform(-0.5, 0.5)),
        focal_mm=41.0 + float(rng.uniform(-0.5, 0.5)),
    )
    # A quarter is drawn large and reduced, as a processor reduces the standard pictures.
    return figure, camera, 2 * SIZE if rng.random() < 0.25 else SIZE


def picture(number: int) -> np.ndarray:
    """Training picture ``number``: uint8, (256, 256, 3)."""
    figure, camera, size = random_scene(number)
    pixels = draw(memory_scene(figure), camera.view(size), FAST).pixels
    if size == SIZE:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((SIZE, SIZE), Image.Resampling.BICUBIC))


def label(number: int) -> tuple[int, int, float, float]:
    """Shape and colour as indices, distance and lateral place in metres."""
    figure, _, _ = random_scene(number)
    return SHAPES.index(figure.shape), COLOURS.index(figure.colour), figure.distance_m, figure.x_m


def prepare(folder: Path, n: int, workers: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures ``(n, 256, 256, 3)`` and labels ``(n,)``; continues where an earlier call stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    path, done_file = folder / f"scenes-{n}.npy", folder / f"scenes-{n}.done"
    done = int(done_file.read_text()) if done_file.exists() else 0
    shape = (n, SIZE, SIZE, 3)
    pictures = np.lib.format.open_memmap(path, "r+" if done else "w+", dtype=np.uint8, shape=shape)
    if done < n:
        began, start = time.time(), done
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            for number, pixels in enumerate(pool.imap(picture, range(start, n), chunksize=20), start):
                pictures[number] = pixels
                if (number + 1) % 500 == 0 or number + 1 == n:
                    pictures.flush()
                    done_file.write_text(str(number + 1))
                    print(f"scenes {number + 1}/{n} {time.time() - began:.0f} s", file=sys.stderr, flush=True)
    labels = np.array([label(number) for number in range(n)], LABELS)
    return np.load(path, mmap_mode="r"), labels


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
