"""All kinds of furniture by name, and where each may stand."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deixis.benchmarks.render import furniture_seats as seats
from deixis.benchmarks.render import furniture_storage as storage
from deixis.benchmarks.render import furniture_things as things
from deixis.benchmarks.render.finish import Finish
from deixis.benchmarks.render.scene import Parts

PLACES = ("wall", "free", "either")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of furniture.

    ``build`` takes a finish and a source of chance for sizes and details; it returns solids on the floor's origin, the middle of
    the footprint, the front towards +y.
    """

    name: str
    build: Callable[[Finish, np.random.Generator], Parts]
    place: str
    """``wall``: its back to a wall; ``free``: away from walls, turned anyhow; ``either``."""


FURNITURE = {
    kind.name: kind
    for kind in (
        Kind(name="sofa", build=seats.sofa, place="wall"),
        Kind(name="armchair", build=seats.armchair, place="either"),
        Kind(name="chair", build=seats.chair, place="either"),
        Kind(name="stool", build=seats.stool, place="either"),
        Kind(name="bench", build=seats.bench, place="wall"),
        Kind(name="pouf", build=seats.pouf, place="either"),
        Kind(name="office chair", build=seats.office_chair, place="free"),
        Kind(name="bed", build=seats.bed, place="wall"),
        Kind(name="table", build=storage.table, place="either"),
        Kind(name="coffee table", build=storage.coffee_table, place="free"),
        Kind(name="round table", build=storage.round_table, place="free"),
        Kind(name="desk", build=storage.desk, place="wall"),
        Kind(name="bookshelf", build=storage.bookshelf, place="wall"),
        Kind(name="wardrobe", build=storage.wardrobe, place="wall"),
        Kind(name="chest of drawers", build=storage.chest, place="wall"),
        Kind(name="sideboard", build=storage.sideboard, place="wall"),
        Kind(name="nightstand", build=storage.nightstand, place="wall"),
        Kind(name="television", build=storage.tv_stand, place="wall"),
        Kind(name="fridge", build=storage.fridge, place="wall"),
        Kind(name="floor lamp", build=things.floor_lamp, place="either"),
        Kind(name="plant", build=things.plant, place="either"),
        Kind(name="tree", build=things.tree, place="either"),
        Kind(name="basket", build=things.basket, place="either"),
        Kind(name="trunk", build=things.trunk, place="wall"),
        Kind(name="bin", build=things.bin_, place="either"),
        Kind(name="coat stand", build=things.coat_stand, place="either"),
        Kind(name="piano", build=things.piano, place="wall"),
        Kind(name="fireplace", build=things.fireplace, place="wall"),
    )
}
