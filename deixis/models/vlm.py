"""A vision-language model with its processor, seen through its family's record."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from deixis.benchmarks import Item, Option
from deixis.models.families import Family
from deixis.models.inputs import accepts, prepare
from deixis.models.layout import Layout
from deixis.models.roles import token_roles


@dataclass(frozen=True, kw_only=True, eq=False)
class VLM:
    """A loaded model; make one with :func:`deixis.load` or :func:`deixis.wrap`."""

    model: Any
    processor: Any
    family: Family
    name: str
    revision: str | None = None
    unchecked: tuple[str, ...] = ()
    """Checks that could not run on this model, each with its reason; see :func:`deixis.models.checks.check_vlm`."""

    def __repr__(self) -> str:
        return f"VLM({self.name!r}, {self.family.architecture}, {self.n_layers} layers of width {self.d_model}, {self.device})"

    @property
    def blocks(self) -> nn.ModuleList:
        """The decoder's blocks, in order."""
        return self.model.get_submodule(self.family.blocks)

    @property
    def final_norm(self) -> nn.Module:
        """The norm between the last block and the head; its input is ``resid`` at layer L."""
        return self.model.get_submodule(self.family.final_norm)

    @property
    def head(self) -> nn.Module:
        """The matrix that turns normed residuals into logits."""
        return self.model.get_submodule(self.family.head)

    def attention_of(self, layer: int) -> tuple[str, nn.Module]:
        """A decoder block's attention, with its name in the block (such as ``self_attn`` or ``linear_attn``).

        Raises:
            ValueError: The block has none of the record's attentions.
        """
        for name in self.family.attention:
            module = getattr(self.blocks[layer], name, None)
            if module is not None:
                return name, module
        wanted = " or ".join(self.family.attention)
        raise ValueError(f"block {layer} of {self.family.architecture} has no {wanted}; correct the record's attention.")

    def out_proj_of(self, layer: int) -> nn.Module | None:
        """The projection whose input holds the heads' outputs side by side; None where the attention has no such heads."""
        _, attention = self.attention_of(layer)
        return next((found for name in self.family.out_proj if (found := getattr(attention, name, None)) is not None), None)

    def mlp_of(self, layer: int) -> nn.Module:
        """A decoder block's MLP, or mixture of experts."""
        return self.blocks[layer].get_submodule(self.family.mlp)

    @property
    def vision_block_modules(self) -> nn.ModuleList:
        """The vision tower's blocks, in order.

        Raises:
            ValueError: This family has no vision blocks.
        """
        blocks, more = self._part(self.model, "vision_blocks"), self.family.more_vision_blocks
        return blocks if more is None else nn.ModuleList([*blocks, *self.model.get_submodule(more)])

    def vision_attention_of(self, block: int) -> nn.Module:
        """The attention of a block of the vision tower.

        Raises:
            ValueError: This family has no vision blocks, or none with attention.
        """
        return self._part(self.vision_block_modules[block], "vision_attention")

    @property
    def merger_module(self) -> nn.Module:
        """The module that turns vision features into image tokens.

        Raises:
            ValueError: This family has no merger.
        """
        return self._part(self.model, "merger")

    def _part(self, owner: nn.Module, field: str) -> Any:
        paths = getattr(self.family, field)
        if paths is None:
            raise ValueError(f"{self.family.architecture} has no {field}; its record says so.")
        return owner.get_submodule(_first_path(owner, (paths,) if isinstance(paths, str) else paths))

    @property
    def text_config(self) -> Any:
        """The decoder's part of the config."""
        return self.model.config.get_text_config()

    @property
    def n_layers(self) -> int:
        """L, the number of decoder blocks; ``resid`` has the layers 0 to L."""
        return len(self.blocks)

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return self.text_config.hidden_size

    @property
    def n_heads(self) -> int:
        """Query heads of each decoder block."""
        return self.text_config.num_attention_heads

    @property
    def device(self) -> torch.device:
        """Where the inputs go: the embeddings' device."""
        embeddings = self.model.get_submodule(self.family.embeddings)
        if embeddings.weight.device.type != "meta":
            return embeddings.weight.device
        # Weights that accelerate keeps elsewhere until they are needed: its hook knows where they run.
        runs_on = getattr(getattr(embeddings, "_hf_hook", None), "execution_device", None)
        return self.model.device if runs_on is None else torch.device(runs_on)

    @property
    def tokenizer(self) -> Any:
        """The processor's tokenizer."""
        return self.processor.tokenizer

    @property
    def image_token_id(self) -> int:
        """The token that stands for a piece of a picture."""
        return self.model.config.image_token_id

    @property
    def accepts(self) -> frozenset[str]:
        """Names of the keyword arguments that the model takes, also where something is wrapped around its ``forward``."""
        return accepts(self.model)

    def reset(self) -> None:
        """Forget positions kept from an earlier pass (see :attr:`Family.keeps_positions`); call before each forward pass."""
        if self.family.keeps_positions is not None:
            self.model.get_submodule(self.family.keeps_positions).rope_deltas = None

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Afterwards the positions kept from an earlier pass (see :meth:`reset`) are what they were, also after an exception."""
        if self.family.keeps_positions is None:
            yield
            return
        keeper = self.model.get_submodule(self.family.keeps_positions)
        before = keeper.rope_deltas
        try:
            yield
        finally:
            keeper.rope_deltas = before

    def prepare(self, items: Sequence[Item]) -> dict[str, Tensor]:
        """The model's keyword arguments for a batch of items: the prompt in its chat template, ready for the answer.

        Pictures come first, or where the prompt has the mark ``<image>``, one for each picture.

        Returns:
            What the processor gives and the model takes, left-padded, on :attr:`device`; pixels in the model's dtype. Families
            without rotary positions of their own for pictures get ``position_ids`` counted from the mask. Never
            ``inputs_embeds``.

        Raises:
            ValueError: No item; another number of marks than of pictures; a token that stands for a picture written in a prompt;
                no picture where the family needs one; no chat template; or a batch longer than the model's context.
        """
        return prepare(self, items)

    def layout(self, inputs: Mapping[str, Tensor], items: Sequence[Item]) -> Layout:
        """Which pixels each image token of a prepared batch shows, and which rows of the vision tower feed it."""
        sizes = [image.size for item in items for image in item.images]
        pictures = tuple(self.family.layout(self, inputs, sizes)) if sizes else ()
        return Layout(pictures=pictures, images_per_item=tuple(len(item.images) for item in items))

    def token_roles(self, inputs: Mapping[str, Tensor], items: Sequence[Item]) -> dict[str, Bool[Tensor, "batch position"]]:
        """Which positions of a prepared batch belong to each role; see :func:`deixis.models.roles.token_roles`."""
        layout = self.layout(inputs, items)
        token = None if self.family.image_tokens == "cross" else self.image_token_id
        return token_roles(inputs, items, token, layout)

    def first_tokens(self, option: Option) -> tuple[int, ...]:
        """The distinct tokens with which an option's forms begin, in order of the forms.

        A token of nothing but space is left out: any answer may begin with it.
        """
        firsts = [self.form_tokens(form)[0] for form in option.forms]
        return tuple(dict.fromkeys(token for token in firsts if self.tokenizer.decode([token]).strip()))

    def form_tokens(self, form: str) -> tuple[int, ...]:
        """All tokens of a surface form, as the model would write it.

        Raises:
            ValueError: The form has no token.
        """
        tokens = tuple(self.tokenizer(form, add_special_tokens=False).input_ids)
        if not tokens:
            raise ValueError(f"the form {form!r} has no token in this tokenizer; give a form that is not empty.")
        return tokens

    def logits(self, resid: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch vocabulary"]:
        """Final norm and head of what enters the final norm, in float32 (float64 for a model in it), soft-capped like the model.

        The logit lens (nostalgebraist 2020) is this, applied to earlier layers.
        """
        return self._headed(resid, slice(None))

    def logits_of(self, resid: Float[Tensor, "*batch width"], tokens: Sequence[int]) -> Float[Tensor, "*batch token"]:
        """Like :meth:`logits`, for chosen tokens only, at the cost of those tokens."""
        return self._headed(resid, torch.as_tensor(list(tokens), device=self._head_weight.device))

    @property
    def _head_weight(self) -> Tensor:
        weight = self.head.weight
        if not isinstance(weight, Tensor):
            raise TypeError(f"the head of {self.name} has no weight matrix; this family can't be read through a lens.")
        return weight

    def _headed(self, resid: Float[Tensor, "*batch width"], rows: Any) -> Float[Tensor, "*batch chosen"]:
        with torch.inference_mode():
            weight, bias = self._head_weight, getattr(self.head, "bias", None)
            norm_device = next(self.final_norm.parameters()).device
            exact = torch.promote_types(torch.float32, weight.dtype)
            normed = self.final_norm(resid.to(norm_device, exact)).to(weight.device, exact)
            logits = nn.functional.linear(normed, weight[rows].to(exact), None if bias is None else bias[rows].to(exact))
            cap = getattr(self.text_config, "final_logit_softcapping", None) if self.family.soft_caps else None
            return logits if cap is None else cap * torch.tanh(logits / cap)


def _first_path(owner: nn.Module, paths: Sequence[str]) -> str:
    """The first path that leads somewhere; the last one if none does, for the error that names it."""
    for path in paths:
        try:
            owner.get_submodule(path)
        except AttributeError:
            continue
        return path
    return paths[-1]
