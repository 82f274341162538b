"""Whether embreex is there, without which scenes of many thousand triangles can't be drawn in reasonable time."""

from importlib.util import find_spec


def check_embree(what: str) -> None:
    """Refuse to draw ``what`` where embreex is missing: numpy alone would take minutes for a glimpse of it.

    Raises:
        ImportError: embreex is not installed.
    """
    if find_spec("embreex") is None:
        raise ImportError(
            f"drawing {what} needs embreex; run: pip install embreex. Where there is none (Linux on aarch64), draw the set on "
            "another machine with 'deixis render spacenum DIR' and read DIR with deixis.load_items."
        )
