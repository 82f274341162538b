"""The project's own renderer: ray casting by Embree, shading in numpy, truth that is exact."""

from deixis.benchmarks.render.memory_scene import Camera as Camera
from deixis.benchmarks.render.memory_scene import Figure as Figure
from deixis.benchmarks.render.memory_scene import footprint as footprint
from deixis.benchmarks.render.memory_scene import memory_scene as memory_scene
from deixis.benchmarks.render.mesh import SHAPES as SHAPES
from deixis.benchmarks.render.scene import Picture as Picture
from deixis.benchmarks.render.shade import FAST as FAST
from deixis.benchmarks.render.shade import STANDARD as STANDARD
from deixis.benchmarks.render.shade import Quality as Quality
from deixis.benchmarks.render.shade import draw as draw

__all__ = ["FAST", "SHAPES", "STANDARD", "Camera", "Figure", "Picture", "Quality", "draw", "footprint", "memory_scene"]
