"""One forward pass with steps at chosen modules, on nnsight: the place where edits and what they need meet the running model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deixis.hooks.attention_keys import is_watched
from deixis.hooks.errors import EditError, NeverFiredError
from deixis.models import VLM
from deixis.models.sites import Place

Remote = bool | str
"""False runs here; True sends the pass to nnsight's remote service; ``"local"`` rehearses that without a server."""
_KEPT = "_deixis_traced"


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something done to one module while the model runs."""

    name: str
    """What messages call it, such as ``resid 3``."""
    module: nn.Module
    place: Place
    act: Callable[[Any], Any]
    """Gets the module's envoy; what it returns is kept."""


@dataclass(frozen=True, kw_only=True)
class Traced:
    """What a pass left behind."""

    logits: Float[Tensor, "batch vocab"]
    """At the last position, float32."""
    seen: tuple[Any, ...]
    """What each step returned, in the order in which the steps were given."""
    cache: Any
    """Keys and values, where they were asked for."""


def run_steps(
    vlm: VLM, inputs: Mapping[str, Tensor], steps: Sequence[Step], *, cache: bool = False, remote: Remote = False
) -> Traced:
    """One forward pass over a prepared batch, with steps.

    Raises:
        NeverFiredError: A step's module did not run.
        EditError: The model is under an AttentionWatch.
    """
    import nnsight
    from nnsight.intervention.interleaver import OutOfOrderError

    check_unwatched(vlm)
    order = sorted(range(len(steps)), key=lambda number: steps[number].place)
    wrapper = _wrapper(vlm, remote)
    envoys = _envoys(vlm, wrapper)
    actions = [(envoys[steps[number].module], steps[number].act) for number in order]
    fired: list[int] = []
    if remote:
        nnsight.register("deixis")  # the functions below travel with the request
    options: dict[str, Any] = {"use_cache": cache, **({"remote": remote} if remote else {})}
    if "logits_to_keep" in vlm.accepts:
        options["logits_to_keep"] = 1
    vlm.reset()
    try:
        with torch.inference_mode(), wrapper.trace(**inputs, **options):
            seen = nnsight.save([])
            for envoy, act in actions:
                seen.append(act(envoy))
                fired.append(len(fired))
            output = wrapper.output
            logits = output.logits[:, -1].float().save()
            kept = nnsight.save([next(output[name] for name in ("cache", "past_key_values") if name in output)] if cache else [])
    except OutOfOrderError as error:
        name = steps[order[min(len(fired), len(order) - 1)]].name
        raise NeverFiredError(
            f"the edit at {name} never fired: its module did not run in this pass; name a layer that runs for these items."
        ) from error
    finally:
        vlm.reset()
    back = dict(zip(order, seen, strict=True))
    return Traced(logits=logits, seen=tuple(back[number] for number in range(len(steps))), cache=kept[0] if kept else None)


def check_unwatched(vlm: VLM) -> None:
    """Refuse a model whose attention is being watched: the watch would take an edit's passes for those it was told of.

    Raises:
        EditError: It is.
    """
    if is_watched(vlm.model):
        raise EditError("edits don't run under an AttentionWatch, as they make passes of their own; leave the watch first.")


class _OfThisModel(dict[str, Any]):
    """Wrappers by kind. A copy of the model begins without any: a copied wrapper would wait for modules that never run."""

    def __deepcopy__(self, _memo: dict[int, Any]) -> "_OfThisModel":
        return _OfThisModel()

    def __reduce__(self) -> tuple[Any, ...]:
        return _OfThisModel, ()


def _wrapper(vlm: VLM, remote: Remote) -> Any:
    """What nnsight sees of the model, made once: taking it off and putting it on again would break it.

    It leaves no hook; every module carries a ``forward`` of its own that computes the same.
    """
    from nnsight import NNsight, TransformersModel

    class Wrapper(NNsight):
        """nnsight sends inputs to the first parameter's device: for weights that accelerate keeps elsewhere that is no device."""

        @property
        def device(self) -> torch.device:
            return vlm.device

    kept = vlm.model.__dict__.setdefault(_KEPT, _OfThisModel())
    kind = "remote" if remote else "local"
    if kind not in kept:
        kept[kind] = (
            TransformersModel(vlm.model, processor=vlm.processor, task="image-text-to-text") if remote else Wrapper(vlm.model)
        )
    return kept[kind]


def _envoys(vlm: VLM, wrapper: Any) -> dict[nn.Module, Any]:
    by_path = dict(wrapper.named_modules())
    root = wrapper.path
    return {module: by_path[f"{root}.{name}" if name else root] for name, module in vlm.model.named_modules()}
