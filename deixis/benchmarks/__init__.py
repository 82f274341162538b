"""What a model is shown, what a right answer is, how an answer is read. No torch here."""

from deixis.benchmarks.decouple import counter_heuristic as counter_heuristic
from deixis.benchmarks.images import ImageError as ImageError
from deixis.benchmarks.images import ImageHandle as ImageHandle
from deixis.benchmarks.item_json import ItemsError as ItemsError
from deixis.benchmarks.items import Box as Box
from deixis.benchmarks.items import Item as Item
from deixis.benchmarks.items import Items as Items
from deixis.benchmarks.items import Option as Option
from deixis.benchmarks.languages import LanguageError as LanguageError
from deixis.benchmarks.languages import add_language as add_language
from deixis.benchmarks.languages.table import PROMPTS as PROMPTS
from deixis.benchmarks.loading import ItemsWarning as ItemsWarning
from deixis.benchmarks.loading import load_items as load_items
from deixis.benchmarks.memory_game import memory_game as memory_game
from deixis.benchmarks.render import Camera as Camera
from deixis.benchmarks.spacenum import interventions as interventions
from deixis.benchmarks.spacenum import spacenum as spacenum
from deixis.benchmarks.spacenum.options import cyclic_permutations as cyclic_permutations

__all__ = [
    "PROMPTS",
    "Box",
    "Camera",
    "ImageError",
    "ImageHandle",
    "Item",
    "Items",
    "ItemsError",
    "ItemsWarning",
    "LanguageError",
    "Option",
    "add_language",
    "counter_heuristic",
    "cyclic_permutations",
    "interventions",
    "load_items",
    "memory_game",
    "spacenum",
]
