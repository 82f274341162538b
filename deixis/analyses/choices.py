"""What a model chooses in multiple-choice items: accuracy against chance and the majority letter, agreement, position bias."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deixis.analyses.choice_bias import agreement_table, permutation_table, position_table
from deixis.analyses.choice_scores import SceneDraws, score_table
from deixis.analyses.choice_table import choice_table, ways_of
from deixis.analyses.choices_plot import plot_choices

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from deixis.activations import Run
    from deixis.activations.sampling import SampledAnswers
    from deixis.models import VLM


@dataclass(frozen=True)
class Choices:
    """One model's choices, by every way of reading them; frames are shares between 0 and 1, intervals 95 % over scenes."""

    model: str
    seed: int
    _table: "pd.DataFrame"
    _draws: SceneDraws

    def __repr__(self) -> str:
        names = ".to_frame(), .scores(), .agreement(), .positions(), .permutations(), .plot()"
        return f"Choices({self.model!r}, {self._table['item'].nunique()} items by {', '.join(self.ways)}; {names})"

    @property
    def ways(self) -> tuple[str, ...]:
        """The ways in which choices were read; see :data:`deixis.analyses.choice_table.WAYS`."""
        return tuple(ways_of(self._table))

    def to_frame(self) -> "pd.DataFrame":
        """One row per item and way (of ``sampled``, per draw).

        ``letter`` is the chosen one, None where ``outcome`` is ``tied`` (several options have the highest score) or
        ``unreadable``. ``right`` is 1 or 0, of a tie the chance that a random one of the tied is right. ``prob_truth`` is the
        right option's share under a softmax over the options. ``question`` is the item's id without condition and permutation.
        """
        return self._table.copy()

    def scores(self) -> "pd.DataFrame":
        """One row per condition, way and column, and one that is the columns' plain mean.

        ``accuracy`` with ``low, high`` (where all answers are right, or none is, the exact interval of as many scenes, because a
        bootstrap sees no spread there); ``chance`` of a random letter; ``majority``: the accuracy of always answering the letter
        that is right most often, ``majority_letter``; ``top_letter`` and ``top_share``: what the model answers most often.
        ``unreadable`` and ``tied`` are shares of all answers; unreadable ones are not right.
        """
        return score_table(self._table, self._draws)

    def agreement(self) -> "pd.DataFrame":
        """One row per condition and two ways: the share of items on which they name the same letter, and Cohen's kappa.

        ``n`` items that both could read, ``unread`` that one of them could not.
        """
        return agreement_table(self._table, self._draws)

    def positions(self) -> "pd.DataFrame":
        """One row per condition, way, number of options and letter: how often it is chosen.

        ``share`` of the readable answers with its interval, beside ``uniform`` and ``right_share``, how often the letter
        is right.
        """
        return position_table(self._table, self._draws)

    def permutations(self) -> "pd.DataFrame":
        """What cyclic permutations leave: one row per condition, way and number of options; empty without permutations.

        ``accuracy`` averaged over a question's permutations; ``worst`` and ``best`` of the permutations; ``consistent``: share of
        questions in which the same content is chosen whatever its letter; ``always_right``: in all permutations, beside
        ``by_chance``, what independent random letters give for ``consistent``. ``incomplete`` questions lack a permutation and
        are left out.
        """
        return permutation_table(self._table, self._draws)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """See :func:`plot_choices`."""
        return plot_choices(self.scores(), ax)


def choices(
    run: "Run",
    *,
    vlm: "VLM | None" = None,
    sampled: "SampledAnswers | None" = None,
    batch_size: int = 16,
    n_boot: int = 2000,
    seed: int = 0,
) -> Choices:
    """Read a run's multiple-choice answers; :func:`deixis.behaviour` calls this where a run's items are lettered.

    The recorded option logits and, where answers were written, their letters need nothing more.

    Args:
        run: With items whose options are A, B, ... and that have a truth; its other items are left out.
        vlm: The run's model, to score the options' texts as whole strings as well, which takes another pass over the prompts.
        sampled: What :func:`deixis.sample_answers` drew for the run's items.
        batch_size: Items a forward pass, for the texts.
        n_boot: Bootstrap draws of the scenes.
        seed: Of the bootstrap.

    Raises:
        ValueError: No item is lettered; other weights than the run's; drawn answers of another model or of too few items; a
            logit is not finite; ``n_boot`` is below 1.
    """
    if n_boot < 1:
        raise ValueError(f"n_boot={n_boot} must be at least 1.")
    table = choice_table(run, vlm, sampled, batch_size)
    return Choices(str(run.info["model"]), seed, table, SceneDraws.of(table, n_boot, seed))
