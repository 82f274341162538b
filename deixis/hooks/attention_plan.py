"""What is to be kept of a model's attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deixis.models.layout import PICTURE_ROLES

QUERIES = ("answer", "last_text", "options", "bos", *PICTURE_ROLES, "text", "all")
"""Roles whose queries can be looked at; those of pictures also of one picture (``image:0``)."""


@dataclass(frozen=True, kw_only=True)
class AttentionPlan:
    """Which queries of which layers are looked at, and what is kept of their rows."""

    queries: tuple[str, ...] = ("answer",)
    """Roles of the positions that look: ``answer``, ``last_text`` (the prompt's last token), ``options`` (the tokens that name
    the options in the prompt), any other role, or ``all``. Statistics are means over a role's positions."""
    layers: tuple[int, ...] | str = "all"
    """Decoder blocks, or ``"all"``."""
    vision: bool = False
    """Also the vision tower's attention, at all of its blocks."""
    maps: bool = True
    """Keep the mean weight on every image token (float16). :func:`deixis.attention_collapse` and statistics without sinks need
    it."""
    spread: bool = True
    """Keep what sinks and rank collapse are seen by: each image token's largest activation, and how alike tokens are."""

    def __post_init__(self) -> None:
        allowed = f"{', '.join(map(repr, QUERIES))}, or one picture's, such as 'image:0'"
        if isinstance(self.queries, str) or not self.queries:
            raise ValueError(
                f"queries={self.queries!r} must be a non-empty list of: {allowed}, or one picture's, such as 'image:0'."
            )
        for query in self.queries:
            base, _, number = query.partition(":") if isinstance(query, str) else ("", "", "")
            if query not in QUERIES and not (base in PICTURE_ROLES and number.isascii() and number.isdigit()):
                raise ValueError(f"queries holds {query!r}, which is not one of: {allowed}.")
        object.__setattr__(self, "queries", tuple(dict.fromkeys(self.queries)))
        if not isinstance(self.layers, str):
            object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))

    @classmethod
    def of(cls, wanted: "bool | Sequence[str] | AttentionPlan") -> "AttentionPlan | None":
        """A plan from what :func:`deixis.record` is given: False, True, names of queries, or a plan.

        Raises:
            ValueError: It is none of these.
        """
        if isinstance(wanted, AttentionPlan) or wanted is False:
            return wanted or None
        if wanted is True:
            return cls()
        if isinstance(wanted, str) or not isinstance(wanted, Sequence):
            raise ValueError(
                f"attention={wanted!r} is neither True, False, a list of queries such as ('answer',), nor an AttentionPlan."
            )
        return cls(queries=tuple(wanted))

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "AttentionPlan":
        """The plan behind what :meth:`deixis.hooks.AttentionWatch.settings` says."""
        decoder = settings["sites"]["attention"]
        return cls(
            queries=tuple(decoder["queries"]),
            layers=tuple(decoder["layers"]),
            vision="vision_attention" in settings["sites"],
            maps=settings["maps"],
            spread=settings["spread"],
        )
