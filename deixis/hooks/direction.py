"""A direction in a model's activations, with what it belongs to."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from deixis.hooks.edit_sites import checked_layers
from deixis.hooks.errors import DirectionError
from deixis.models import VLM


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A vector to add at a site and layer, for one unit of a target."""

    target: str
    unit: str
    vector: Float[np.ndarray, " width"]
    """For one unit of the target, float64."""
    mean: Float[np.ndarray, " width"]
    """Mean of the vectors that it was learned from."""
    site: str
    layer: int
    role: str
    model: str
    """Name of the model whose activations it was learned from."""
    revision: str | None = None
    weights: str | None = None
    """Fingerprint of that model's weights."""

    @property
    def norm(self) -> float:
        """Length of the vector: how far one unit of the target lies."""
        return float(np.linalg.norm(self.vector))

    def with_vector(self, vector: Float[np.ndarray, " width"], target: str) -> "Direction":
        """Another vector at the same place, such as a random one as a control."""
        return replace(self, vector=np.asarray(vector, dtype=np.float64), target=target)

    def random(self, seed: int) -> "Direction":
        """A direction drawn evenly from the sphere, of the same length."""
        drawn = np.random.default_rng((self.layer, seed)).normal(size=self.vector.shape)
        return self.with_vector(drawn * (self.norm / np.linalg.norm(drawn)), f"random {seed}")

    def check_finite(self) -> None:
        """Refuse a vector or a mean that would make activations NaN.

        Raises:
            DirectionError: One of them holds NaN or infinity.
        """
        if not (np.isfinite(self.vector).all() and np.isfinite(self.mean).all()):
            raise DirectionError(f"the direction of {self.target} holds NaN or infinity; learn it from finite activations.")

    def check_fits(self, vlm: VLM) -> None:
        """Refuse another model.

        Raises:
            DirectionError: The direction's width is not the model's, or it was learned from a model of another name or revision.
            NoSuchSiteError: The model has no such site and layer.
        """
        checked_layers(vlm, self.site, self.layer)
        width = site_width(vlm, self.site)
        if len(self.vector) != width:
            raise DirectionError(
                f"the direction of {self.target} has width {len(self.vector)} and {self.site} of {vlm.name} has width {width}; "
                "learn it from a run of this model."
            )
        if (self.model, self.revision) != (vlm.name, vlm.revision):
            found, wanted = (f"{name} at revision {rev or 'none'}" for name, rev in ((self.model, self.revision), _of(vlm)))
            raise DirectionError(f"the direction of {self.target} was learned from {found}, not from {wanted}; learn it anew.")


def _of(vlm: VLM) -> tuple[str, str | None]:
    return vlm.name, vlm.revision


def site_width(vlm: VLM, site: str) -> int:
    """Width of the vectors at a site of the decoder."""
    if site != "head":
        return vlm.d_model
    found = next((module for n in range(vlm.n_layers) if (module := vlm.out_proj_of(n)) is not None), None)
    return int(getattr(found, "in_features", 0))
