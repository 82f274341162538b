"""What continues from a prompt's pass (:class:`deixis.models.passes.PromptPass`): written answers."""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor

from deixis.models import VLM
from deixis.models.passes import PromptPass as PromptPass

Choose = Callable[[Float[Tensor, "batch vocab"]], Int[Tensor, " batch"]]


def most_likely(logits: Float[Tensor, "batch vocab"]) -> Int[Tensor, " batch"]:
    """The token with the highest logit of each row."""
    return logits.argmax(dim=-1)


def written_answers(state: PromptPass, max_new_tokens: int, choose: Choose = most_likely) -> list[str]:
    """Continue each prompt until the model ends its answer; special tokens are left out of the text. ``state`` moves on.

    Args:
        state: The model behind the prompts.
        max_new_tokens: Most tokens of an answer.
        choose: Takes each row's next token from its logits. With :func:`most_likely` the answers equal those of
            ``model.generate(do_sample=False)`` with no penalties.
    """
    ends = _end_tokens(state.vlm)
    chosen = choose(state.logits)
    answers: list[list[int]] = [[] for _ in range(len(chosen))]
    open_rows = set(range(len(chosen)))
    for step in range(max_new_tokens):
        for row, token in enumerate(chosen.tolist()):
            if row in open_rows:
                answers[row].append(token)
                if token in ends:
                    open_rows.discard(row)
        if not open_rows or step == max_new_tokens - 1:
            break
        state.extended(chosen[:, None].to(state.mask.device))
        chosen = choose(state.logits)
    return [state.vlm.tokenizer.decode(tokens, skip_special_tokens=True) for tokens in answers]


def _end_tokens(vlm: VLM) -> frozenset[int]:
    configured = getattr(vlm.model.generation_config, "eos_token_id", None)
    if configured is None:
        configured = vlm.tokenizer.eos_token_id
    if configured is None:
        return frozenset()
    return frozenset([configured] if isinstance(configured, int) else configured)
