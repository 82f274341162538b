"""How large a model is where it counts: parameters that every token meets, and what a forward pass costs."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from deixis.models import VLM


@dataclass(frozen=True)
class ModelSize:
    """Parameters by what passes through them, and the widths of the attention."""

    total: int
    """All parameters, embeddings and idle experts too."""
    decoder: float
    """Of the decoder's blocks; of its experts the share that a token meets."""
    head: int
    """Of the matrix that gives the logits."""
    tower: float
    """Of the vision tower, which every patch meets."""
    merger: int
    """Of what turns patches into image tokens, which every image token meets."""
    n_layers: int
    width: int
    """Heads times head width, of the decoder's attention."""
    tower_layers: int
    tower_width: int
    merged: float
    """Patches in an image token."""
    weight_bytes: int
    """Of all parameters in their own dtypes: what a device needs beside activations."""

    def of_prompt(self, tokens: Int[np.ndarray, " item"], blocks: int | None = None) -> Float[np.ndarray, " item"]:
        """Operations of the decoder for each prompt: 2 N T + 2 L d T^2 (causal), and the logits of the last position.

        Args:
            tokens: Of each prompt.
            blocks: How many blocks run, where the pass ends before the logits; None for all of it.
        """
        counts = tokens.astype(np.float64)
        decoder = 2 * self.decoder * counts + 2 * self.n_layers * self.width * counts**2
        return decoder + 2.0 * self.head if blocks is None else decoder * blocks / self.n_layers

    def of_answer(self, tokens: Int[np.ndarray, " item"], steps: int) -> Float[np.ndarray, " item"]:
        """Operations of ``steps`` further tokens, each of which sees all before it."""
        before = steps * tokens.astype(np.float64) + steps * (steps + 1) / 2
        return 2 * (self.decoder + self.head) * steps + 4 * self.n_layers * self.width * before

    def of_patches(self, patches: Int[np.ndarray, " item"]) -> Float[np.ndarray, " item"]:
        """Operations of the vision tower and the merger for each item's patches, which all see each other."""
        counts = patches.astype(np.float64)
        attended = 4 * self.tower_layers * self.tower_width * counts**2
        return 2 * self.tower * counts + attended + 2 * self.merger * counts / self.merged


def model_size(vlm: VLM) -> ModelSize:
    """Count a model's parameters; it need have no weights."""
    config, family = vlm.text_config, vlm.family
    share = _expert_share(config)
    decoder = tower = 0.0
    merger = 0
    for name, weight in vlm.model.named_parameters():
        if name.startswith(f"{family.blocks}."):
            decoder += weight.numel() * (share if ".experts." in name else 1.0)
        elif not name.startswith((f"{family.embeddings}.", f"{family.head}.", f"{family.final_norm}.")):
            if "merger" in name or "projector" in name or "connector" in name:
                merger += weight.numel()
            else:
                tower += weight.numel()
    vision = getattr(vlm.model.config, "vision_config", None)
    return ModelSize(
        total=sum(weight.numel() for weight in vlm.model.parameters()),
        decoder=decoder,
        head=vlm.head.weight.numel(),  # type: ignore[union-attr, operator]  # a Linear
        tower=tower,
        merger=merger,
        n_layers=vlm.n_layers,
        width=attention_width(vlm),
        tower_layers=_first(vision, ("depth", "num_hidden_layers")),
        tower_width=_first(vision, ("embed_dim", "hidden_size")),
        merged=float(_first(vision, ("spatial_merge_size",)) or 1) ** 2,
        weight_bytes=sum(weight.numel() * weight.element_size() for weight in vlm.model.parameters()),
    )


def attention_width(vlm: VLM) -> int:
    """Heads times head width, of the layer where that is most (some configs have head widths for each layer)."""
    projections = [vlm.out_proj_of(layer) for layer in range(vlm.n_layers)]
    return max((getattr(projection, "in_features", 0) for projection in projections), default=0) or vlm.d_model


def _expert_share(config: object) -> float:
    """Of a mixture's experts, the share that a token is sent to."""
    chosen = getattr(config, "num_experts_per_tok", None)
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    return chosen / experts if chosen and experts else 1.0


def _first(config: object, names: tuple[str, ...]) -> int:
    return next((found for name in names if isinstance(found := getattr(config, name, None), int)), 0)
