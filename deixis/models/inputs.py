"""From items to a model's keyword arguments: chat template, pictures, left padding, positions."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from deixis.benchmarks import Item
from deixis.benchmarks.items import IMAGE_MARK

if TYPE_CHECKING:
    from deixis.models.vlm import VLM

_PLACEHOLDERS = tuple(
    f"{kind}_token" for kind in ("image", "video", "boi", "eoi", "start_image", "end_image", "context_image", "image_break")
)
"""Names under which processors and tokenizers keep tokens that stand for pictures."""


def prepare(vlm: "VLM", items: Sequence[Item]) -> dict[str, Tensor]:
    """The model's keyword arguments for a batch of items; see ``VLM.prepare``."""
    if not items:
        raise ValueError("prepare() got no item; give at least one.")
    counts = sorted({len(item.images) for item in items})
    if not vlm.family.mixes_counts and len(counts) > 1:
        listed = " and ".join(map(str, counts))
        raise ValueError(
            f"the batch has items with {listed} pictures, for which {vlm.family.architecture} gives other results than for each "
            "alone; put only items with equally many into a batch (batch_size=1 always does)."
        )
    texts = [prompt_text(vlm, item) for item in items]
    pictures = [[image.load() for image in item.images] for item in items]
    opening = vlm.tokenizer.bos_token
    with warnings.catch_warnings():
        # PaliGemma's processor makes a numpy array of a tensor in a way that numpy has announced to drop.
        warnings.filterwarnings("ignore", message="__array__ implementation", category=DeprecationWarning)
        batch = vlm.processor(
            text=texts,
            images=pictures if any(pictures) else None,
            padding=True,
            padding_side="left",
            return_tensors="pt",
            # A template that writes the opening token must not get a second one from the tokenizer.
            **({"add_special_tokens": False} if opening and texts[0].startswith(opening) else {}),
        )
    accepted = accepts(vlm.model) - {"labels"}
    inputs = {name: value for name, value in batch.items() if isinstance(value, Tensor) and name in accepted}
    if vlm.family.keeps_positions is None:
        counted = inputs["attention_mask"].cumsum(dim=1) - 1
        inputs["position_ids"] = counted.clamp(min=0) + vlm.family.first_position
    _check_fit(vlm, inputs, items)
    dtype = vlm.model.dtype
    return {name: v.to(vlm.device, dtype if v.is_floating_point() else v.dtype) for name, v in inputs.items()}


def accepts(model: Any) -> frozenset[str]:
    """Names of the keyword arguments that a model's class takes, whatever has been put around the instance's ``forward``."""
    return frozenset(inspect.signature(type(model).forward).parameters)


def prompt_text(vlm: "VLM", item: Item) -> str:
    """The prompt as the processor takes it, each picture one placeholder, ready for the answer.

    Raises:
        ValueError: Marks and pictures differ in number, the prompt holds a token that stands for a picture, or there is no chat
            template.
    """
    content = _content(vlm, item)
    if vlm.family.prompt is not None and not _has_template(vlm):
        return vlm.family.prompt(vlm, content)
    if not _has_template(vlm):
        found = " (its tokenizer's, if that writes pictures too)" if getattr(vlm.tokenizer, "chat_template", None) else ""
        raise ValueError(
            f"the processor of {vlm.name} has no chat template; set processor.chat_template to the one that the model was tuned "
            f"with{found}."
        )
    message = [{"role": "user", "content": content}]
    return vlm.processor.apply_chat_template(message, tokenize=False, add_generation_prompt=True)


def plain_prompt(vlm: "VLM", content: Sequence[Mapping[str, str]]) -> str:
    """Placeholders and text one after the other, for families that are prompted without a template."""
    return "".join(part.get("text", vlm.processor.image_token) for part in content)


def _has_template(vlm: "VLM") -> bool:
    return getattr(vlm.processor, "chat_template", None) is not None


def _content(vlm: "VLM", item: Item) -> list[dict[str, str]]:
    """Pictures and pieces of text in the order in which the model sees them."""
    pieces = item.prompt.split(IMAGE_MARK)
    marks, n = len(pieces) - 1, len(item.images)
    if marks and marks != n:
        raise ValueError(
            f"item {item.id!r} has {n} pictures and {marks} marks {IMAGE_MARK} in its prompt; give a mark for each, or none."
        )
    for token in _placeholders(vlm):
        if any(token in piece for piece in pieces):
            raise ValueError(f"item {item.id!r} has the image token {token} in its prompt; take it out, or write {IMAGE_MARK}.")
    if vlm.family.needs_picture and not n:
        raise ValueError(f"item {item.id!r} has no picture, and {vlm.family.architecture} takes no prompt without one.")
    picture, text = {"type": "image"}, [{"type": "text", "text": piece} for piece in pieces]
    if not marks:
        return [*(dict(picture) for _ in range(n)), *text]
    mixed = [part for piece in text for part in (piece, dict(picture))][:-1]
    return [part for part in mixed if part.get("text") != ""]


def _placeholders(vlm: "VLM") -> tuple[str, ...]:
    """Every token that would be taken for a picture, a video or an edge of one."""
    named = [getattr(owner, name, None) for owner in (vlm.processor, vlm.tokenizer) for name in _PLACEHOLDERS]
    found = (vlm.tokenizer.convert_ids_to_tokens(vlm.image_token_id), *named)
    return tuple(dict.fromkeys(token for token in found if isinstance(token, str)))


def _check_fit(vlm: "VLM", inputs: Mapping[str, Tensor], items: Sequence[Item]) -> None:
    longest, context = inputs["input_ids"].shape[1], getattr(vlm.text_config, "max_position_embeddings", None)
    if context is not None and longest > context:
        raise ValueError(f"a prompt of {longest} tokens does not fit the model's context of {context}; shorten it.")
    found = (inputs["input_ids"] == vlm.image_token_id).sum(dim=1).tolist()
    wanted = vlm.layout(inputs, items).tokens_per_item
    if vlm.family.image_tokens == "cross":
        wanted = tuple(len(item.images) for item in items)
    for item, has, makes in zip(items, found, wanted, strict=True):
        if has != makes:
            raise ValueError(
                f"item {item.id!r} has {has} image tokens where its {len(item.images)} pictures make {makes}; "
                "the processor and the family's record disagree."
            )
