"""From where a head counts as collapsed."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CollapseRule:
    """From where a head counts as collapsed."""

    sink: float = 0.8
    """Mass on the first token, visual sinks and learned sinks."""
    uniform: float = 0.95
    """Entropy over its maximum."""
    object_lift: float = 1.25
    """Lift of the object over the same places in other scenes, below which a head is taken not to favour it."""
    fixed: float = 0.9
    """Mean correlation between maps of different scenes."""
    image_mass: float = 0.1
    """Mass on the picture below which its map is not looked at."""
    level: float = 0.95
    """Of the intervals over scenes."""
    draws: int = 1000
    """Bootstrap draws of scenes, and at most so many shuffles."""

    def __post_init__(self) -> None:
        for name in ("sink", "uniform", "fixed", "image_mass", "level"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must lie between 0 and 1.")
        if self.draws < 100 or self.object_lift < 1:
            raise ValueError("draws must be at least 100, and object_lift at least 1.")
