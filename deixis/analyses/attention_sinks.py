"""Visual sinks: image tokens that draw attention whatever they show, found in the model itself.

A sink has a massive activation: one dimension of its residual stream holds so much that phi = max |x| / rms(x) stands out (Sun et
al. 2024, arXiv 2402.17762; Kang et al. 2025, arXiv 2503.03321, whose threshold of 20 is the default here). phi is at most the
square root of the width, so that in models narrower than about 700 no token could reach 20; there the threshold is three
quarters of that root, which is one dimension holding more than half of the squared norm.

The massive dimensions are estimated from the run: those in which the first token, or an image token, stands out in at least a
tenth of the items. Sinks that arrive from the vision tower (massive in it, or on entering the decoder) and sinks that the
decoder makes are told apart, as in arXiv 2604.03316.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from deixis.activations.attention import AttentionRecord

PHI = 20.0
"""Kang et al. 2025, section 4."""
NARROW = 0.75
"""Of the largest phi that a width allows; for widths in which :data:`PHI` is out of reach."""
RECURS = 0.1
"""Share of the items in which a dimension must be massive to count as one of the model's."""


@dataclass(frozen=True, eq=False)
class VisualSinks:
    """Which image tokens are sinks, layer by layer."""

    threshold: float
    """phi from which a token of the decoder counts as massive."""
    dims: tuple[int, ...]
    """Massive dimensions of the decoder's residual stream."""
    vision_born: Bool[np.ndarray, " token"]
    """Massive in the vision tower or on entering the decoder."""
    decoder_born: Bool[np.ndarray, "token layer"]
    """Massive on entering a layer, in one of ``dims``, and not born in the vision tower. The layers are the record's."""

    @property
    def either(self) -> Bool[np.ndarray, "token layer"]:
        """Sinks of both kinds."""
        return self.decoder_born | self.vision_born[:, None]

    def __str__(self) -> str:
        """What was found, in a sentence."""
        tokens, born, made = len(self.vision_born), int(self.vision_born.sum()), int(self.decoder_born.any(axis=1).sum())
        if not born and not made:
            return f"none of the {tokens} image tokens is a sink: no dimension is massive (phi from {self.threshold:.1f})"
        where = f" (in the dimensions {', '.join(map(str, self.dims))}; phi from {self.threshold:.1f})" if self.dims else ""
        return f"{born} of {tokens} image tokens are sinks from the vision tower, {made} become sinks in the decoder{where}"


def threshold_for(width: int, phi: float = PHI) -> float:
    """Phi from which a token counts as massive in a stream of this width."""
    return min(phi, NARROW * width**0.5)


def find_sinks(record: "AttentionRecord", phi: float = PHI) -> VisualSinks:
    """The visual sinks of a run.

    Args:
        record: Recorded with ``AttentionPlan(spread=True)``.
        phi: The threshold for streams wide enough to reach it.

    Raises:
        RunError: The run was recorded without peaks.
    """
    peaks, tokens = record.peaks, record.tokens
    limit = threshold_for(peaks.width, phi)
    massive, bos_massive = peaks.phi >= limit, peaks.bos_phi >= limit
    dims = _recurring(peaks.dim, massive, tokens.owners, peaks.bos_dim, bos_massive)
    from_tower = (
        np.nan_to_num(peaks.vision_phi, nan=0.0) >= threshold_for(peaks.vision_width, phi) if peaks.vision_width else False
    )
    vision_born = np.asarray(massive[:, 0] | from_tower)
    here = (massive & np.isin(peaks.dim, dims))[:, list(record.layers)]
    return VisualSinks(limit, dims, vision_born, here & ~vision_born[:, None])


def _recurring(
    dim: np.ndarray, massive: np.ndarray, owners: np.ndarray, bos_dim: np.ndarray, bos_massive: np.ndarray
) -> tuple[int, ...]:
    """Dimensions that are massive in at least :data:`RECURS` of the items, at one layer or another behind the first."""
    found: dict[int, set[int]] = {}
    for token, layer in zip(*np.nonzero(massive), strict=True):
        if layer:
            found.setdefault(int(dim[token, layer]), set()).add(int(owners[token]))
    for item, layer in zip(*np.nonzero(bos_massive), strict=True):
        found.setdefault(int(bos_dim[item, layer]), set()).add(int(item))
    return tuple(sorted(d for d, items in found.items() if len(items) >= RECURS * len(bos_dim)))


def mass_on(
    record: "AttentionRecord", flags: Bool[np.ndarray, "token layer"], query: str = "answer"
) -> Float[np.ndarray, "item layer head"]:
    """The weight that a role's queries put on flagged tokens; 0 in items without one."""
    maps, tokens = record.maps(query), record.tokens
    mass = np.zeros((len(tokens.counts), *maps.shape[1:]), np.float32)
    for item in np.unique(tokens.owners[flags.any(axis=1)]):
        mine = tokens.of(int(item))
        mass[item] = (maps[mine].astype(np.float32) * flags[mine, :, None]).sum(axis=0)
    return mass
