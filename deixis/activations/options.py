"""How much a model wants each option: from the first answer position, or, where that cannot tell, from whole strings."""

from collections.abc import Sequence

import torch

from deixis.activations.passes import PromptPass
from deixis.benchmarks import Item, Option
from deixis.models import VLM


def need_whole_strings(vlm: VLM, options: Sequence[Option]) -> bool:
    """Whether first tokens cannot tell the options apart: two share one, or one has none but space."""
    firsts = [set(vlm.first_tokens(option)) for option in options]
    return not all(firsts) or sum(map(len, firsts)) > len(set().union(*firsts))


def option_logits(state: PromptPass, items: Sequence[Item]) -> list[list[float]]:
    """One number for each option of each item; a softmax over an item's numbers is its distribution.

    An option's logit is the logsumexp over the distinct first tokens of its forms. If two options of an item share a first token,
    or an option's first token is only space, all of that item's options are scored as whole strings instead: the sum of the log
    probabilities of a form's tokens behind the prompt, and the logsumexp over forms. That is a log probability, not a logit. A
    form that begins with another form of the same option is part of it and not counted again. ``state`` stays where it is.
    """
    whole = [need_whole_strings(state.vlm, item.options) for item in items]
    scores = [[] if whole[row] else _first_token_logits(state, row, item.options) for row, item in enumerate(items)]
    strings = [
        (row, number, tokens)
        for row, item in enumerate(items)
        if whole[row]
        for number, option in enumerate(item.options)
        for tokens in form_tokens(state.vlm, option)
    ]
    found: dict[tuple[int, int], list[float]] = {}
    for start in range(0, len(strings), len(items)):  # no more rows at once than the prompts took
        part = strings[start : start + len(items)]
        for (row, number, _), value in zip(part, _string_scores(state, [(r, t) for r, _, t in part]), strict=True):
            found.setdefault((row, number), []).append(value)
    for row, item in enumerate(items):
        if whole[row]:
            scores[row] = [float(torch.tensor(found[row, number]).logsumexp(0)) for number in range(len(item.options))]
    return scores


def form_tokens(vlm: VLM, option: Option) -> list[tuple[int, ...]]:
    """The option's forms as distinct token sequences, none of which begins with another."""
    sequences = sorted({vlm.form_tokens(form) for form in option.forms}, key=lambda tokens: (len(tokens), tokens))
    kept: list[tuple[int, ...]] = []
    for tokens in sequences:
        if not any(tokens[: len(shorter)] == shorter for shorter in kept):
            kept.append(tokens)
    return kept


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
