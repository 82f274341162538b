"""How long prompts come out, to put like with like before anything is prepared."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from deixis.benchmarks import Item
from deixis.benchmarks.images import UniformImage
from deixis.models.inputs import prompt_text
from deixis.models.vlm import VLM


@dataclass(eq=False)
class PromptLengths:
    """Tokens of prompts, as far as it takes to tell the longer from the shorter."""

    vlm: VLM
    _of_size: dict[tuple[int, int], int] = field(default_factory=dict)
    _of_text: dict[tuple[str, int], int] = field(default_factory=dict)
    """Of the prompts that were asked for last, with the pictures in each; many items may share a prompt."""

    def of(self, items: Sequence[Item]) -> list[int]:
        """Tokens of each item's prompt; without those of its pictures where all items have pictures of the same sizes.

        What a picture of some size comes to is learned from a grey one, once a size. Families in which a picture's tokens depend
        on its neighbours (LLaVA-OneVision) make this a guess, which costs padding and nothing else.
        """
        keys = [(item.prompt, len(item.images)) for item in items]
        known = self._of_text
        self._of_text = {key: known.get(key) or self._text(item) for key, item in dict(zip(keys, items, strict=True)).items()}
        texts = [self._of_text[key] for key in keys]
        sizes = [tuple(image.size for image in item.images) for item in items]
        if len(set(sizes)) == 1:
            return texts
        return [text + sum(map(self._picture, own)) for text, own in zip(texts, sizes, strict=True)]

    def _text(self, item: Item) -> int:
        """Tokens of a prompt in which each picture is one mark."""
        return len(self.vlm.tokenizer(prompt_text(self.vlm, item), add_special_tokens=False).input_ids)

    def _picture(self, size: tuple[int, int]) -> int:
        """Tokens that a picture puts in the place of its mark."""
        if size not in self._of_size:
            grey = replace(_PLAIN, images=(UniformImage(width=size[0], height=size[1]),))
            self._of_size[size] = self.vlm.prepare([grey])["input_ids"].shape[1] - self._text(grey)
        return self._of_size[size]


_PLAIN = Item(id="plain", benchmark="none", task="none", language="en", images=(), prompt="a", options=())
