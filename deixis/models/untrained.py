"""The same architecture with random weights: what of a score is owed to the architecture and the pictures alone."""

import copy

import torch

from deixis.models.vlm import VLM


def untrained(vlm: VLM, seed: int = 0) -> VLM:
    """A model of the same configuration with random weights, as its authors initialise them, and the same processor.

    A probe of it says how much can be read from the pictures through random projections: a control for probes of trained models
    (Conneau et al. 2018, arXiv 1805.01070, compare with untrained encoders; Zhang and Bowman 2018, arXiv 1809.10040).

    Matrices and gates that are initialised to zero are filled with small random numbers, since a zero would hide the picture from
    the layers behind it (Gemma 3's projection, the gates of Mllama).

    Args:
        vlm: The trained model; it is not changed.
        seed: Of the weights. The random state of torch is left as it was.

    Returns:
        The model on the same device and in the same dtype, named ``"<name> (untrained)"``.
    """
    model, config = vlm.model, copy.deepcopy(vlm.model.config)
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        fresh = type(model)._from_config(config, dtype=model.dtype)
        _fill_zeros(fresh, float(getattr(config.get_text_config(), "initializer_range", 0.02)))
    return VLM(
        model=fresh.to(model.device).eval(),
        processor=vlm.processor,
        family=vlm.family,
        name=f"{vlm.name} (untrained)",
        revision=f"seed {seed}",
    )


def _fill_zeros(model: torch.nn.Module, spread: float) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            if (parameter.ndim > 1 or parameter.numel() == 1) and not parameter.any():
                parameter.normal_(std=spread)
