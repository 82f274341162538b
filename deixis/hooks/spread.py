"""How alike a picture's tokens are, and how far their largest activation stands out.

Sinks are seen by massive activations (Sun et al. 2024, arXiv 2402.17762): a token whose residual stream holds nearly all of its
norm in one or two dimensions. Kept is phi = max |x| / rms(x) of every token and the dimension where it lies (Kang et al. 2025,
arXiv 2503.03321, take the same ratio at dimensions known beforehand). phi is at most the square root of the width.

Rank collapse (Dong et al. 2021, arXiv 2103.03404) is seen by the mean cosine between pairs of tokens, and by their effective rank
exp(H(s / sum s)) with the singular values s of the tokens' matrix (Roy and Vetterli 2007).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from deixis.models import VLM
from deixis.models.layout import Layout

SAMPLED = 64
"""The effective rank is that of at most so many tokens of an item, evenly spaced among its image tokens."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """The largest activation of each token."""

    phi: Float[Tensor, " token"]
    """Over the root mean square of the token's activations."""
    dim: Int[Tensor, " token"]

    @classmethod
    def of(cls, hidden: Float[Tensor, "token width"]) -> "Peaks":
        """Of every row."""
        exact = hidden.float()
        largest, dim = exact.abs().max(dim=-1)
        return cls(largest / exact.square().mean(dim=-1).sqrt(), dim.to(torch.int32))


def mean_cosine(hidden: Float[Tensor, "token width"], item: Int[Tensor, " token"], n_items: int) -> Float[Tensor, " item"]:
    """Mean cosine over all pairs of an item's tokens; NaN with fewer than two.

    Over n unit vectors u the cosines of all pairs sum to |sum u|^2 - n.
    """
    unit = torch.nn.functional.normalize(hidden.float(), dim=-1)
    total = unit.new_zeros((n_items, unit.shape[1])).index_add_(0, item, unit)
    n = torch.bincount(item, minlength=n_items).to(total)
    return (total.square().sum(dim=-1) - n) / torch.where(n > 1, n * (n - 1), torch.nan)


def gram_of_sample(
    hidden: Float[Tensor, "token width"], sample: Int[Tensor, "item sampled"]
) -> Float[Tensor, "item sampled sampled"]:
    """Inner products of the sampled tokens of each item, in float64; -1 in ``sample`` stands for no token."""
    picked = hidden[sample.clamp(min=0)].double().masked_fill((sample < 0)[..., None], 0)
    return picked @ picked.transpose(1, 2)


def samples(item: Int[Tensor, " token"], n_items: int) -> Int[Tensor, "item sampled"]:
    """Evenly spaced tokens of each item, at most :data:`SAMPLED`; -1 where there are fewer."""
    chosen = torch.full((n_items, SAMPLED), -1, dtype=torch.long)
    for number in range(n_items):
        mine = (item == number).nonzero()[:, 0].cpu()
        n = min(SAMPLED, len(mine))
        if n:
            chosen[number, :n] = mine[torch.linspace(0, len(mine) - 1, n).round().long()]
    return chosen.to(item.device)


def effective_rank(gram: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """The exponential of the entropy of the singular values; NaN without a token.

    The singular values of the tokens' matrix are the roots of the eigenvalues of their inner products.
    """
    singular = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
    share = singular / singular.sum(dim=-1, keepdim=True)
    return torch.special.entr(share).sum(dim=-1).exp()


class SpreadWatch:
    """Keep peaks and likeness of image tokens in the residual stream entering each block, and peaks entering the merger.

    The hooks are attached by :meth:`hooks`' caller. Names of :meth:`read` are those under which a run keeps the arrays.
    """

    def __init__(self, vlm: VLM) -> None:
        self._vlm = vlm
        self._places: dict[torch.device, tuple[Tensor, Tensor, Tensor, Tensor, Tensor]] = {}
        self._n_items = 0
        self._of_merger_row: Int[Tensor, " row"] | None = None
        self._peaks: dict[int, tuple[Peaks, Peaks, Tensor, Tensor]] = {}
        self._merger_rows: list[Peaks] = []
        self._merger_width = 0

    def hooks(self) -> Iterator[tuple[nn.Module, Callable[..., None]]]:
        """Modules, and what is to hear their inputs before they run."""
        for layer, module in enumerate([*self._vlm.blocks, self._vlm.final_norm]):
            yield module, self._hear(layer)
        if self._vlm.family.merger is not None:
            yield self._vlm.merger_module, self._hear_merger

    def follow(self, image: Bool[Tensor, "batch position"], bos: Int[Tensor, " batch"], layout: Layout) -> None:
        """Say where the image tokens of the next forward pass are."""
        rows, columns = image.nonzero(as_tuple=True)
        self._n_items = len(image)
        self._places = {image.device: (rows, columns, samples(rows, len(image)), torch.arange(len(image)).to(bos.device), bos)}
        self._peaks, self._merger_rows = {}, []
        try:
            self._of_merger_row = layout.token_of_row("merger_in")
        except ValueError:  # a family without such rows
            self._of_merger_row = None

    def _hear(self, layer: int) -> Callable[..., None]:
        def hear(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden = args[0] if args else kwargs["hidden_states"]
            if not self._places or layer in self._peaks:
                return
            rows, columns, sample, items, bos = self._on(hidden.device)
            picked = hidden.detach()[rows, columns]
            cosine = mean_cosine(picked, rows, self._n_items)
            gram = gram_of_sample(picked, sample) if len(picked) else torch.full((self._n_items, 1, 1), torch.nan).double()
            self._peaks[layer] = (Peaks.of(picked), Peaks.of(hidden.detach()[items, bos]), cosine, gram)

        return hear

    def _on(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        if device not in self._places:
            rows, columns, sample, items, bos = (part.to(device) for part in next(iter(self._places.values())))
            self._places[device] = rows, columns, sample, items, bos
        return self._places[device]

    def _hear_merger(self, _module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        entered = args[0] if args else next(iter(kwargs.values()))
        if self._places and isinstance(entered, Tensor) and entered.ndim > 1:
            self._merger_rows.append(Peaks.of(entered.detach().flatten(0, -2)))
            self._merger_width = entered.shape[-1]

    def read(self, n_tokens: int) -> dict[str, Tensor]:
        """What the last forward pass held, on the host."""
        layers = range(self._vlm.n_layers + 1)
        found: dict[str, Tensor] = {}
        kept = [self._peaks[layer] for layer in layers]
        found["peaks/phi"] = _stacked([peaks.phi for peaks, _, _, _ in kept]).half()
        found["peaks/dim"] = _stacked([peaks.dim for peaks, _, _, _ in kept])
        found["peaks/bos_phi"] = _stacked([bos.phi for _, bos, _, _ in kept])
        found["peaks/bos_dim"] = _stacked([bos.dim for _, bos, _, _ in kept])
        found["likeness/cosine"] = _stacked([cosine for _, _, cosine, _ in kept])
        grams = torch.stack([gram.cpu() for _, _, _, gram in kept], dim=1)
        found["likeness/rank"] = (grams[..., 0, 0] if grams.shape[-1] == 1 else effective_rank(grams)).float()
        found["peaks/vision_phi"] = self._merger_peaks(n_tokens).half()
        found["peaks/vision_width"] = torch.full((self._n_items,), self._merger_width, dtype=torch.int32)
        self._places, self._peaks, self._merger_rows = {}, {}, []
        return found

    def _merger_peaks(self, n_tokens: int) -> Float[Tensor, " token"]:
        """The largest phi of the rows that feed each image token; NaN where the family has no such rows."""
        phi = torch.cat([peaks.phi.cpu() for peaks in self._merger_rows]) if self._merger_rows else torch.zeros(0)
        feeds = self._of_merger_row
        if feeds is None or len(phi) != len(feeds):
            return torch.full((n_tokens,), torch.nan)
        largest = torch.zeros(n_tokens)
        return largest.scatter_reduce_(0, feeds[feeds >= 0], phi[feeds >= 0], reduce="amax")


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack([part.cpu() for part in parts], dim=1)
