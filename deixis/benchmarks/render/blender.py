"""The same scenes through Blender: meshes, camera and lights are handed to Cycles, which draws them on the CPU.

Blender's module ``bpy`` wants numpy below 2, which this library does not run on, and keeps one global state. It therefore lives
in a Python environment of its own and draws in a process of its own (:mod:`~deixis.benchmarks.render.blender_worker`). Its
licence is the GPL; nothing of it is imported here.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from deixis.benchmarks.render import blender_worker
from deixis.benchmarks.render.air import mean_colour
from deixis.benchmarks.render.scene import Picture, RectLight, Scene, View
from deixis.benchmarks.render.stage import Stage
from deixis.benchmarks.render.trace import F

BLENDER_PYTHON = "DEIXIS_BLENDER_PYTHON"
"""Environment variable: the Python that has bpy."""
SAMPLES = 16
"""Light paths per pixel where nothing else is said."""
MAX_SAMPLES = 4096
# Colours of the surfaces are looked up at so many places across a pixel, and as many down.
_FINE = 3
_ROWS_AT_ONCE = 64
_TELLS_LINES = 3


def blender_python() -> str:
    """The Python that has Blender: ``$DEIXIS_BLENDER_PYTHON``, or this one if it has bpy.

    Raises:
        ImportError: There is none.
    """
    named = os.environ.get(BLENDER_PYTHON)
    if named is None and find_spec("bpy") is not None:
        return sys.executable
    found = shutil.which(named) if named else None
    if found is None:
        what = f"{BLENDER_PYTHON}={named!r} is no program" if named else "drawing with Blender needs the package bpy"
        raise ImportError(
            f"{what}; make an environment of its own (bpy wants numpy below 2) with python3.11 -m venv blender && "
            f"blender/bin/pip install 'bpy=={blender_worker.VERSION}.*', and set {BLENDER_PYTHON}=blender/bin/python."
        )
    return found


def check_samples(samples: object) -> None:
    """Refuse numbers of samples that Cycles can't draw.

    Raises:
        ValueError: No whole number from 1 to 4096.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= MAX_SAMPLES:
        raise ValueError(f"samples={samples!r} is no whole number from 1 to {MAX_SAMPLES}; 16 to 64 are usual.")


def draw_with_blender(scene: Scene | Stage, view: View, samples: int = SAMPLES) -> Picture:
    """Draw a scene with Cycles; objects and depth are those of :func:`~deixis.benchmarks.render.draw`, so the truth is the same.

    Args:
        scene: Or a stage that was made of one to be seen many times.
        view: The camera.
        samples: Light paths per pixel; noise falls with their square root, time grows with them.

    Raises:
        ImportError: There is no Blender (:func:`blender_python`).
        ValueError: ``samples`` is out of range.
        RuntimeError: Blender failed, with what it said last.
    """
    stage = scene if isinstance(scene, Stage) else Stage(scene)
    pixels = cycles_pixels(stage, view, samples)
    objects, depth = stage.seen(view)
    return Picture(pixels, objects, depth)


def cycles_pixels(stage: Stage, view: View, samples: int = SAMPLES) -> UInt8[np.ndarray, "row column rgb"]:
    """The pixels alone: the same bytes for the same arguments on the same machine.

    Raises:
        ImportError: There is no Blender (:func:`blender_python`).
        ValueError: ``samples`` is out of range.
        RuntimeError: Blender failed, with what it said last.
    """
    check_samples(samples)
    python = blender_python()
    with tempfile.TemporaryDirectory(prefix="deixis-blender-") as folder:
        _write_job(Path(folder), stage, view, samples)
        # -P: modules that lie beside the worker must not be taken for those that Blender imports.
        command = [python, "-P", blender_worker.__file__, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        result = Path(folder) / blender_worker.RESULT
        if done.returncode != 0 or not result.is_file():
            said = " / ".join((done.stderr or done.stdout).strip().splitlines()[-_TELLS_LINES:])
            raise RuntimeError(f"Blender could not draw the scene ({said or done.returncode}); check the Python {python}.")
        with Image.open(result) as image:
            return np.asarray(image.convert("RGB")).copy()


def _write_job(folder: Path, stage: Stage, view: View, samples: int) -> None:
    """What the worker reads: triangles, their materials and objects, colours as the camera sees them, everything else as JSON."""
    scene, materials = stage.scene, stage.tracer.materials
    sizes = [len(solid.corners) for solid, _, _ in scene.solids]
    number = {material: i for i, material in enumerate(materials)}
    is_textured = any(material.texture for material in materials)
    arrays = {
        "corners": np.concatenate([solid.corners for solid, _, _ in scene.solids]).astype(F),
        "normals": np.concatenate([solid.normals for solid, _, _ in scene.solids]).astype(F),
        "material": np.repeat([number[material] for _, material, _ in scene.solids], sizes).astype(np.int32),
        "object": np.repeat([n for _, _, n in scene.solids], sizes).astype(np.int32),
    }
    if is_textured:
        arrays["seen_colours"] = seen_colours(stage, view)
    np.savez(folder / blender_worker.ARRAYS, **arrays)
    job = {
        "materials": [
            {"colour": mean_colour(m.colour, m.second), "is_textured": m.texture is not None, "emission": m.emission}
            for m in materials
        ],
        "lights": [_light(light) for light in scene.lights],
        "ambient": scene.ambient,
        "camera": {"position": view.position, "axes": view.axes.tolist(), "focal_mm": view.focal},
        "size": [view.width, view.height],
        "samples": samples,
    }
    (folder / blender_worker.JOB).write_text(json.dumps(job), encoding="utf-8")


def _light(light: RectLight) -> dict[str, Any]:
    return {"centre": light.centre, "u": light.u, "v": light.v, "normal": light.normal.tolist(), "radiance": light.radiance}


def seen_colours(stage: Stage, view: View) -> Float[np.ndarray, "fine_row fine_column rgb"]:
    """Linear colours of the surfaces, textures included, at three by three places in each pixel, the first row on top.

    Cycles takes them for what the camera sees of a textured surface, so that textures are those of our own renderer, exactly.
    """
    width, height = view.width * _FINE, view.height * _FINE
    bands = []
    for top in range(0, height, _ROWS_AT_ONCE):
        rows, columns = np.mgrid[top : min(top + _ROWS_AT_ONCE, height), 0:width]
        direction = view.rays((columns.ravel() + 0.5) / _FINE, (rows.ravel() + 0.5) / _FINE).astype(F)
        hits = stage.tracer.first(np.broadcast_to(np.array(view.position, F), direction.shape), direction)
        bands.append(stage.albedo(hits).astype(F).reshape(*rows.shape, 3))
    return np.concatenate(bands)
