"""How much a model wants each option: from the first answer position, or, where that cannot tell, from whole strings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from deixis.activations.passes import PromptPass
from deixis.benchmarks import Item, Option
from deixis.models import VLM

_REPLACEMENT = "\ufffd"
_NOTHING_LEFT = float(np.finfo(np.float32).eps)
"""What remains of a string's probability is never less than this share of it: the steps are summed in float32."""


def need_whole_strings(vlm: VLM, options: Sequence[Option]) -> bool:
    """Whether first tokens cannot tell the options apart: two share one, or one is only space or a part of a character."""
    firsts = [set(vlm.first_tokens(option)) for option in options]
    if not all(firsts) or sum(map(len, firsts)) > len(set().union(*firsts)):
        return True
    # A tokenizer that falls back to bytes begins a hundred other characters with the same byte.
    return any(_REPLACEMENT in vlm.tokenizer.decode([token]) for token in set().union(*firsts))


def check_forms(vlm: VLM, item: Item) -> None:
    """Refuse surface forms that the tokenizer does not know: every unknown word has the same token.

    Raises:
        ValueError: The message names item, option and form.
    """
    unknown = getattr(vlm.tokenizer, "unk_token_id", None)
    for option in item.options:
        for form in option.forms:
            if unknown is not None and unknown in vlm.form_tokens(form):
                raise ValueError(
                    f"item {item.id!r}: the tokenizer of {vlm.name} does not know the form {form!r} of the option "
                    f"{option.label!r}; leave the form out, or the language."
                )


def option_logits(state: PromptPass, items: Sequence[Item], *, whole: bool | Sequence[bool] | None = None) -> list[list[float]]:
    """One number for each option of each item; a softmax over an item's numbers is its distribution.

    An option's logit is the logsumexp over the distinct first tokens of its forms. If two options of an item share a first token,
    or an option's first token is only space, all of that item's options are scored as whole strings instead: the sum of the log
    probabilities of a form's tokens behind the prompt, and the logsumexp over forms; a log probability, not a logit. Where
    one option's form goes on from another's, the shorter counts only if the answer does not go on to be the longer one; see
    :class:`StringTree`. ``state`` stays where it is.

    Args:
        state: The model behind the items' prompts.
        items: Those of the batch, in order.
        whole: Score every item as whole strings (True) or by first tokens (False), or say it for each; None for what each
            item needs.

    Raises:
        ValueError: Two options of an item share a surface form, or the tokenizer does not know one; the message names it.
    """
    for item in {item.options: item for item in items}.values():
        check_forms(state.vlm, item)
    if whole is None:
        rows = [need_whole_strings(state.vlm, item.options) for item in items]
    else:
        rows = [whole] * len(items) if isinstance(whole, bool) else list(whole)
    scores = [[] if rows[row] else _first_token_logits(state, row, item.options) for row, item in enumerate(items)]
    trees = {row: StringTree.of(state.vlm, item) for row, item in enumerate(items) if rows[row]}
    strings = [(row, tokens) for row, tree in trees.items() for tokens in tree.strings]
    found: dict[int, list[float]] = {row: [] for row in trees}
    for start in range(0, len(strings), len(items)):  # no more rows at once than the prompts took
        part = strings[start : start + len(items)]
        for (row, _), value in zip(part, _string_scores(state, part), strict=True):
            found[row].append(value)
    for row, tree in trees.items():
        scores[row] = tree.option_scores(found[row])
    return scores


@dataclass(frozen=True)
class StringTree:
    """The token sequences of an item's options, each below the longest of the others that it begins with.

    An answer that begins with ``this one`` begins with ``this`` too: scored as they stand, the shorter would include the longer.
    What counts for an option is that the answer begins with one of its own sequences and does not go on to be a longer one of
    another option, so that the options are events that exclude each other. An end token behind the shorter would say the same of
    answers that hold nothing else, but a demonstrative is followed by a colour and a shape.
    """

    strings: tuple[tuple[int, ...], ...]
    owner: tuple[int, ...]
    """Number of the option that a sequence belongs to."""
    above: tuple[int | None, ...]
    """Place of the sequence that it goes on from."""
    n_options: int

    @classmethod
    def of(cls, vlm: VLM, item: Item) -> "StringTree":
        """The sequences of an item's options; one that goes on from its own option's is left out, being part of it.

        Raises:
            ValueError: Two options share a surface form.
        """
        owners: dict[tuple[int, ...], int] = {}
        for number, option in enumerate(item.options):
            for form in option.forms:
                first = owners.setdefault(vlm.form_tokens(form), number)
                if first != number:
                    raise ValueError(
                        f"item {item.id!r}: the options {item.options[first].label!r} and {option.label!r} share the surface "
                        f"form {form!r}, or forms with its tokens; give it to one of them."
                    )
        strings: list[tuple[int, ...]] = []
        above: list[int | None] = []
        for tokens in sorted(owners, key=lambda tokens: (len(tokens), tokens)):
            starts = [at for at, kept in enumerate(strings) if tokens[: len(kept)] == kept]
            parent = starts[-1] if starts else None
            if parent is None or owners[strings[parent]] != owners[tokens]:
                strings.append(tokens)
                above.append(parent)
        return cls(tuple(strings), tuple(owners[tokens] for tokens in strings), tuple(above), len(item.options))

    def option_scores(self, log_probs: Sequence[float]) -> list[float]:
        """Log probability of each option from those of the sequences: what is below a sequence is taken off it."""
        from scipy.special import logsumexp

        values = np.asarray(log_probs, dtype=np.float64)
        own = values.copy()
        for at in {parent for parent in self.above if parent is not None}:
            below = values[[number for number, parent in enumerate(self.above) if parent == at]]
            own[at] += np.log(max(1 - float(np.exp(np.asarray(logsumexp(below)) - values[at])), _NOTHING_LEFT))
        owner = np.array(self.owner)
        return [float(np.asarray(logsumexp(own[owner == number]))) for number in range(self.n_options)]


def _first_token_logits(state: PromptPass, row: int, options: Sequence[Option]) -> list[float]:
    logits = state.logits[row]
    return [float(logits[list(state.vlm.first_tokens(option))].logsumexp(0)) for option in options]


def _string_scores(state: PromptPass, strings: Sequence[tuple[int, tuple[int, ...]]]) -> list[float]:
    """Log probability of each token sequence behind its row's prompt."""
    longest = max(len(tokens) for _, tokens in strings)
    padded = torch.zeros((len(strings), longest), dtype=torch.long, device=state.mask.device)
    for number, (_, tokens) in enumerate(strings):
        padded[number, : len(tokens)] = torch.tensor(tokens)
    copied = state.rows([row for row, _ in strings])
    logits = copied.logits[:, None]
    if longest > 1:
        # What fills short sequences up stands behind their own tokens, where a causal model cannot see it.
        logits = torch.cat([logits, copied.extended(padded[:, :-1])], dim=1)
    steps = logits.log_softmax(dim=-1).gather(-1, padded.to(logits.device)[..., None])[..., 0]
    return [float(steps[number, : len(tokens)].sum()) for number, (_, tokens) in enumerate(strings)]
