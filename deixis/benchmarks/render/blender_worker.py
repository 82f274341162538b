"""Draws one scene with Cycles. A program of its own, run as ``python blender_worker.py FOLDER`` by a Python that has bpy.

It imports nothing of this library, whose other packages that Python may lack, so its arrays are described in words. The folder
holds the job that :mod:`deixis.benchmarks.render.blender` wrote, and gets the picture.
"""

import json
import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

VERSION = "4.5"
"""Of Blender, its long-term support release; another one draws other bytes."""
JOB, ARRAYS, RESULT = "job.json", "arrays.npz", "picture.png"
# Matt paint with a faint sheen; the scenes' own renderer has none.
_ROUGHNESS, _SPECULAR = 0.5, 0.1
_DIFFUSE_BOUNCES, _BOUNCES = 4, 6
_NEAREST_M, _FARTHEST_M = 0.01, 100.0
_SENSOR_MM = 36.0


def main(folder: Path) -> None:
    """Draw the job in ``folder``."""
    bpy: Any = import_module("bpy")
    if bpy.app.version_string.rsplit(".", 1)[0] != VERSION:
        sys.exit(f"this is Blender {bpy.app.version_string}, and {VERSION} is needed: pip install 'bpy=={VERSION}.*'")
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS) as file:
        arrays = dict(file)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    _add_objects(bpy, arrays, _materials(bpy, job["materials"], arrays.get("seen_colours")))
    for light in job["lights"]:
        _add_light(bpy, light)
    _add_surroundings(bpy, job["ambient"])
    _add_camera(bpy, job["camera"])
    _set_up_cycles(bpy.context.scene, job["size"], job["samples"])
    bpy.context.scene.render.filepath = str(folder / RESULT)
    bpy.ops.render.render(write_still=True)


def _materials(bpy: Any, described: list[dict[str, Any]], seen_colours: np.ndarray | None) -> list[Any]:
    image = None if seen_colours is None else _image(bpy, seen_colours)
    return [_material(bpy, entry, image) for entry in described]


def _material(bpy: Any, entry: dict[str, Any], image: Any) -> Any:
    material = bpy.data.materials.new("material")
    material.use_nodes = True
    tree, surface = material.node_tree, material.node_tree.nodes["Principled BSDF"]
    surface.inputs["Roughness"].default_value = _ROUGHNESS
    surface.inputs["Specular IOR Level"].default_value = _SPECULAR
    surface.inputs["Base Color"].default_value = (*entry["colour"], 1.0)
    surface.inputs["Emission Color"].default_value = (*entry["colour"], 1.0)
    surface.inputs["Emission Strength"].default_value = entry["emission"]
    if entry["is_textured"]:
        colour = _seen_colour(tree, entry["colour"], image)
        tree.links.new(colour, surface.inputs["Base Color"])
        tree.links.new(colour, surface.inputs["Emission Color"])
    return material


def _seen_colour(tree: Any, mean: list[float], image: Any) -> Any:
    """Where the camera looks, the colour that it sees there; the material's mean colour for light that is reflected elsewhere."""
    path, place = tree.nodes.new("ShaderNodeLightPath"), tree.nodes.new("ShaderNodeTexCoord")
    texture, mix = tree.nodes.new("ShaderNodeTexImage"), tree.nodes.new("ShaderNodeMix")
    texture.image, texture.interpolation, texture.extension = image, "Closest", "EXTEND"
    mix.data_type = "RGBA"
    # A mix node has sockets for numbers, vectors and colours in one list; 6 and 7 are the two colours, 2 is the mixed one.
    mix.inputs[6].default_value = (*mean, 1.0)
    tree.links.new(place.outputs["Window"], texture.inputs["Vector"])
    tree.links.new(path.outputs["Is Camera Ray"], mix.inputs[0])
    tree.links.new(texture.outputs["Color"], mix.inputs[7])
    return mix.outputs[2]


def _image(bpy: Any, colours: np.ndarray) -> Any:
    """Linear colours, row by column by rgb with the first row on top; Blender begins at the bottom."""
    height, width, _ = colours.shape
    image = bpy.data.images.new("seen colours", width, height, float_buffer=True)
    image.colorspace_settings.name = "Non-Color"
    pixels = np.ones((height, width, 4), np.float32)
    pixels[..., :3] = colours[::-1]
    image.pixels.foreach_set(pixels.ravel())
    image.update()
    return image


def _add_objects(bpy: Any, arrays: dict[str, np.ndarray], materials: list[Any]) -> None:
    for number in np.unique(arrays["object"]):
        rows = np.flatnonzero(arrays["object"] == number)
        corners = arrays["corners"][rows].astype(np.float64)
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        rows = rows[(cross * cross).sum(axis=1) > 0]  # triangles without area have no normal
        if len(rows):
            mesh = _mesh(bpy, arrays["corners"][rows], arrays["normals"][rows])
            used, slots = np.unique(arrays["material"][rows], return_inverse=True)
            for material in used:
                mesh.materials.append(materials[material])
            mesh.polygons.foreach_set("material_index", slots.astype(np.int32))
            _link(bpy, mesh)


def _mesh(bpy: Any, corners: np.ndarray, normals: np.ndarray) -> Any:
    """Of triangle by corner by xyz; no two triangles share a corner, and each corner keeps its own normal."""
    n, mesh = len(corners), bpy.data.meshes.new("object")
    mesh.vertices.add(3 * n)
    mesh.loops.add(3 * n)
    mesh.polygons.add(n)
    mesh.vertices.foreach_set("co", np.ascontiguousarray(corners, np.float32).ravel())
    mesh.loops.foreach_set("vertex_index", np.arange(3 * n, dtype=np.int32))
    mesh.polygons.foreach_set("loop_start", np.arange(0, 3 * n, 3, dtype=np.int32))
    mesh.update(calc_edges=True)
    mesh.polygons.foreach_set("use_smooth", np.ones(n, bool))
    mesh.normals_split_custom_set(normals.reshape(-1, 3).tolist())
    return mesh


def _add_light(bpy: Any, described: dict[str, Any]) -> None:
    """An area light that the camera doesn't see; its power is that of a matt rectangle of the given radiance."""
    u, v = np.array(described["u"]), np.array(described["v"])
    light = bpy.data.lights.new("light", "AREA")
    light.shape = "RECTANGLE"
    light.size, light.size_y = (2 * math.sqrt(float((half * half).sum())) for half in (u, v))
    light.energy = described["radiance"] * math.pi * light.size * light.size_y
    backwards = -np.array(described["normal"])
    placed = _link(bpy, light, _turned(u, np.cross(backwards, u), backwards, described["centre"]))
    placed.visible_camera = False


def _add_surroundings(bpy: Any, ambient: float) -> None:
    world = bpy.data.worlds.new("surroundings")
    bpy.context.scene.world = world
    world.use_nodes = True
    world.node_tree.nodes["Background"].inputs["Color"].default_value = (ambient, ambient, ambient, 1.0)


def _add_camera(bpy: Any, described: dict[str, Any]) -> None:
    camera = bpy.data.cameras.new("camera")
    camera.sensor_fit, camera.sensor_width, camera.lens = "HORIZONTAL", _SENSOR_MM, described["focal_mm"]
    camera.clip_start, camera.clip_end = _NEAREST_M, _FARTHEST_M
    right, up, forward = (np.array(axis) for axis in described["axes"])
    bpy.context.scene.camera = _link(bpy, camera, _turned(right, up, -forward, described["position"]))


def _turned(x: np.ndarray, y: np.ndarray, z: np.ndarray, at: list[float]) -> list[list[float]]:
    """Matrix that takes an object's axes to these directions and its origin to ``at``."""
    axes = [axis / math.sqrt(float((axis * axis).sum())) for axis in (x, y, z)]
    return [[*(float(axis[i]) for axis in axes), float(at[i])] for i in range(3)] + [[0.0, 0.0, 0.0, 1.0]]


def _link(bpy: Any, data: Any, matrix: list[list[float]] | None = None) -> Any:
    placed = bpy.data.objects.new(data.name, data)
    if matrix is not None:
        placed.matrix_world = import_module("mathutils").Matrix(matrix)
    bpy.context.scene.collection.objects.link(placed)
    return placed


def _set_up_cycles(scene: Any, size: list[int], samples: int) -> None:
    """Everything that decides the bytes is fixed: seed, samples, one thread, no adaptive sampling, plain sRGB without dither."""
    render, cycles = scene.render, scene.cycles
    render.engine, render.resolution_percentage = "CYCLES", 100
    render.resolution_x, render.resolution_y = size
    render.threads_mode, render.threads = "FIXED", 1
    render.image_settings.file_format, render.image_settings.color_mode = "PNG", "RGB"
    render.use_stamp, render.dither_intensity = False, 0.0
    scene.display_settings.display_device = "sRGB"
    scene.view_settings.view_transform = "Standard"
    cycles.device, cycles.samples, cycles.seed = "CPU", samples, 0
    cycles.use_adaptive_sampling, cycles.use_denoising = False, True
    cycles.max_bounces, cycles.diffuse_bounces = _BOUNCES, _DIFFUSE_BOUNCES


if __name__ == "__main__":
    main(Path(sys.argv[1]))
