"""Listening to a model's own attention: the same implementation under another key, with a listener beside it.

transformers looks an attention function up by the name in the config of each part of a model, and the mask it is given by the
same name. For every implementation that is listened to there is one more name in both registries; a model is pointed to it
while it is watched and pointed back afterwards. The names that were there before keep their functions, so no other model is
affected.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from deixis.hooks.attention_calls import AttentionCall

Listener = Callable[[AttentionCall], None]
PREFIX = "deixis_"
_WATCHED = "this model's attention is being watched already; leave the other watch first."
_LISTENERS: "WeakKeyDictionary[nn.Module, Listener]" = WeakKeyDictionary()


class AttentionError(RuntimeError):
    """A model's attention can't be read."""


class Listening:
    """Point parts of a model to the listened-to twin of their attention, and back.

    Args:
        listeners: What hears each attention module's calls.
        device: Where the model is, to refuse what can't run there.

    Raises:
        AttentionError: An implementation has no twin; the message says what to do.
    """

    def __init__(self, listeners: dict[nn.Module, Listener], device: str) -> None:
        self._listeners = listeners
        self._configs = _configs_of(listeners)
        self._before = [config._attn_implementation for config in self._configs]
        for module in listeners:
            _check_readable(module, _config_of(module)._attn_implementation, device)

    def start(self) -> None:
        """From now on the listeners hear every call.

        Raises:
            AttentionError: One of the modules is listened to already.
        """
        for module in self._listeners:
            if module in _LISTENERS:
                raise AttentionError(_WATCHED)
        self._before = [config._attn_implementation for config in self._configs]
        _LISTENERS.update(self._listeners)
        for config, name in zip(self._configs, self._before, strict=True):
            config._attn_implementation = {"": _twin(name)}

    def stop(self) -> None:
        """Everything as it was before :meth:`start`."""
        for config, name in zip(self._configs, self._before, strict=True):
            config._attn_implementation = {"": name}
        for module in self._listeners:
            _LISTENERS.pop(module, None)


def is_watched(model: nn.Module) -> bool:
    """Whether any part of a model is being listened to."""
    return bool(_LISTENERS) and any(module in _LISTENERS for module in model.modules())


def _config_of(module: nn.Module) -> Any:
    return getattr(module, "config", None)


def _configs_of(modules: Iterable[nn.Module]) -> list[Any]:
    """The distinct configs in which these modules look their attention up."""
    found: dict[int, Any] = {}
    for module in modules:
        config = _config_of(module)
        if not hasattr(config, "_attn_implementation"):
            raise AttentionError(
                f"{type(module).__name__} does not choose its attention through transformers' AttentionInterface, so that it "
                "can't be read; use a version of the model that is part of transformers, or record with attention=False."
            )
        found[id(config)] = config
    return list(found.values())


def _check_readable(module: nn.Module, name: str | None, device: str) -> None:
    kind = type(module).__name__
    if name is not None and name.startswith(PREFIX):
        raise AttentionError(_WATCHED)
    if name is not None and "flash" in name and device == "cpu":
        raise AttentionError(f"{kind} is set to {name!r}, which does not run on a CPU; load with attn_implementation='sdpa'.")
    if name is None or "flex" in name or "paged" in name:
        raise AttentionError(
            f"{kind} is set to the attention implementation {name!r}, which can't be read; load the model with "
            "attn_implementation='sdpa', or with 'eager'."
        )
    if _implementation(module, name) is None:
        raise AttentionError(
            f"{kind} has no attention implementation {name!r} that transformers knows of; load the model with "
            "attn_implementation='sdpa', or record with attention=False."
        )


def _implementation(module: nn.Module, name: str) -> Callable[..., Any] | None:
    """The function that ``module`` itself would call; a model's file may hold its own registry and its own eager function."""
    home = sys.modules.get(type(module).__module__)
    registry = getattr(home, "ALL_ATTENTION_FUNCTIONS", ALL_ATTENTION_FUNCTIONS)
    own = getattr(home, "eager_attention_forward", None)
    return own if name == "eager" else registry.get(name, None)


def _twin(name: str) -> str:
    """The key under which ``name`` is listened to. It keeps the name, because transformers looks for "flash" in it."""
    key = PREFIX + name
    if key not in ALL_ATTENTION_FUNCTIONS:
        AttentionInterface.register(key, _listened(name))
        # Without a mask function of its own name a model is given no mask at all.
        AttentionMaskInterface.register(key, ALL_MASK_ATTENTION_FUNCTIONS[name])
    return key


@contextmanager
def _under_own_name(module: nn.Module, name: str) -> Iterator[None]:
    """Flash implementations look their kernel up by the name in the config, which must be their own while they run."""
    if "flash" not in name:
        yield
        return
    config = _config_of(module)
    twin = config._attn_implementation
    config._attn_implementation = {"": name}
    try:
        yield
    finally:
        config._attn_implementation = {"": twin}


def _listened(name: str) -> Callable[..., Any]:
    def attention(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, *args: Any, **kwargs: Any
    ) -> Any:
        original = _implementation(module, name)
        if original is None:
            raise AttentionError(f"{type(module).__name__} has no attention implementation {name!r}.")
        with _under_own_name(module, name):
            result = original(module, query, key, value, attention_mask, *args, **kwargs)
        listener = _LISTENERS.get(module)
        if listener is not None:
            listener(AttentionCall.of(module, name, query.detach(), key.detach(), attention_mask, kwargs))
        return result

    return attention
