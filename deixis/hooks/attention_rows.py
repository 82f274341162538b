"""AttentionRows: whole softmax rows of chosen queries, for those who want to look at the weights themselves."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from deixis.benchmarks import Item
from deixis.hooks.attention import checked_layers, is_linear
from deixis.hooks.attention_calls import AttentionCall
from deixis.hooks.attention_keys import AttentionError, Listening
from deixis.hooks.attention_plan import AttentionPlan
from deixis.hooks.prompt_roles import with_prompt_roles
from deixis.models import VLM


class AttentionRows:
    """Keep the attention rows of one role's queries in the decoder: exact, in float32, and nothing of the other queries.

    Used like :class:`~deixis.hooks.attention.AttentionWatch`. A row costs heads x keys numbers: choose roles of few positions.

    Args:
        vlm: The model.
        query: A role; see :class:`~deixis.hooks.attention_plan.AttentionPlan`.
        layers: Decoder blocks, or ``"all"`` that have softmax attention.

    Raises:
        AttentionError: The model's attention can't be read.
        ValueError: The role or a layer is not known.
    """

    def __init__(self, vlm: VLM, query: str = "answer", layers: Sequence[int] | str = "all") -> None:
        self._query = AttentionPlan(queries=(query,)).queries[0]
        self._vlm = vlm
        self.layers = tuple(layer for layer in checked_layers(layers, vlm.n_layers) if not is_linear(vlm, layer))
        self._listening = Listening({vlm.attention_of(n)[1]: self._hear(n) for n in self.layers}, vlm.device.type)
        self._columns: list[Tensor] = []
        self._kept: dict[int, list[Tensor]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "AttentionRows":
        self._listening.start()
        self._stack.callback(self._listening.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._columns, self._kept = [], {}

    def follow(self, inputs: Mapping[str, Tensor], items: Sequence[Item]) -> None:
        """Say what the next forward pass will be given."""
        roles = with_prompt_roles([self._query], self._vlm.token_roles(inputs, items), inputs, items, self._vlm)
        mask = roles.get(self._query, torch.zeros_like(roles["answer"]))
        self._columns = [row.nonzero()[:, 0] for row in mask]
        self._kept = {}

    def read(self) -> dict[int, list[Float[Tensor, "head query key"]]]:
        """By layer, one tensor for each item; keys are the positions of the padded batch.

        Raises:
            AttentionError: No watched layer ran since :meth:`follow`.
        """
        if not self._kept:
            raise AttentionError("no watched layer ran; run the model between follow and read.")
        return {layer: self._kept[layer] for layer in self.layers if layer in self._kept}

    def _hear(self, layer: int) -> Callable[[AttentionCall], None]:
        def hear(call: AttentionCall) -> None:
            if not self._columns:
                raise AttentionError("the model ran without follow() before it; call follow, one forward pass, then read.")
            self._kept[layer] = [
                call.item(number).rows(columns.to(call.query.device))[0].cpu()
                if len(columns)
                else torch.zeros(call.n_heads, 0, 0)
                for number, columns in enumerate(self._columns)
            ]

        return hear


def _rows_of(call: AttentionCall, number: int, columns: Int[Tensor, " query"]) -> Float[Tensor, "head query key"]:
    if not len(columns):
        return torch.zeros(call.n_heads, 0, call.key.shape[2])
    return call.item(number).rows(columns.to(call.query.device))[0].cpu()
