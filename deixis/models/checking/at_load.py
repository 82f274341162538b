"""The checks that every model passes when it is loaded."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deixis.models.checking.comparing import CannotCheck, close, tolerance
from deixis.models.checking.evidence import CHANGED, LONG, OTHER, SHORT, EditPass, Evidence, Point
from deixis.models.checking.items import Rectangle
from deixis.models.layout import Layout
from deixis.models.sites import SITES

if TYPE_CHECKING:
    from deixis.models.vlm import VLM


def _paths(evidence: Evidence) -> str | None:
    vlm = evidence.vlm
    for name in ("blocks", "final_norm", "head", "embeddings"):
        path = getattr(vlm.family, name)
        try:
            vlm.model.get_submodule(path)
        except AttributeError as error:
            return f"{name} = {path!r} leads nowhere ({error})."
    for name, found in (("vision_blocks", "vision_block_modules"), ("merger", "merger_module")):
        path = getattr(vlm.family, name)
        try:
            _ = None if path is None else getattr(vlm, found)
        except (AttributeError, ValueError) as error:
            return f"{name} = {path!r} leads nowhere ({error})."
    wanted, found = vlm.text_config.num_hidden_layers, len(set(vlm.blocks))
    if found != vlm.n_layers or found != wanted:
        return f"blocks = {vlm.family.blocks!r} holds {found} different blocks, the config names {wanted}."
    for layer in range(vlm.n_layers):
        try:
            _ = vlm.attention_of(layer), vlm.mlp_of(layer)
        except (ValueError, AttributeError) as error:
            return f"blocks = {vlm.family.blocks!r}: {error}"
    return None


def _logits(evidence: Evidence) -> str | None:
    """Check 1: norm and head on ``resid[L]`` give the model's logits."""
    vlm, batch = evidence.vlm, evidence.batch
    if ("resid", vlm.n_layers) not in batch.seen:
        return f"final_norm = {vlm.family.final_norm!r} never ran."
    if vlm.head.weight.device.type == "meta":
        raise CannotCheck("the head's weights are not in memory (offloaded), so logits can't be recomputed.")
    found = vlm.logits(batch.only(("resid", vlm.n_layers))[:, -1]).cpu().double()
    if found.shape != batch.logits.shape or not close(vlm, batch.logits, found):
        return f"{vlm.family.final_norm} and {vlm.family.head} on resid {vlm.n_layers} do not give the model's logits."
    return None


def _resid(evidence: Evidence) -> str | None:
    """Check 4: blocks receive ``resid`` in order, from the embeddings and the merger on."""
    vlm, batch = evidence.vlm, evidence.batch
    ran = [layer for site, layer in batch.seen if site == "resid"]
    if ran != sorted(ran):
        return f"the blocks ran in the order {ran}."
    for layer in range(vlm.n_layers + 1):
        calls = [tuple(call.shape) for call in batch.seen.get(("resid", layer), [])]
        if len(calls) != 1 or len(calls[0]) != 3 or calls[0][-1] != vlm.d_model:
            return f"resid {layer} ran {len(calls)} times with {calls}, not once with (batch, position, {vlm.d_model})."
    text = batch.inputs["attention_mask"].bool() & ~batch.image
    plain = text & ~torch.isin(batch.inputs["input_ids"], _named_tokens(vlm).to(text.device))
    with torch.no_grad():
        embedded = vlm.model.get_submodule(vlm.family.embeddings)(batch.inputs["input_ids"])
    if not _same(batch.only(("resid", 0)), embedded, plain):
        return "resid 0 at a text token is not what the embeddings give."
    for layer in range(1, vlm.n_layers + 1):
        if not _same(batch.only(("resid", layer)), batch.only(("block", layer - 1)), text):
            return f"resid {layer} at a text token is not what block {layer - 1} returns."
    return None


def _named_tokens(vlm: "VLM") -> Int[Tensor, " token"]:
    """Tokens that the config names: some stand for the edges of a picture, which families embed in other ways."""
    named = [value for name, value in vars(vlm.model.config).items() if name.endswith(("token_id", "token_ids", "token_index"))]
    ids = [number for value in named for number in (value if isinstance(value, (list, tuple)) else [value])]
    return torch.tensor([number for number in ids if isinstance(number, int)], dtype=torch.long)


def _same(one: Tensor, two: Tensor, where: Bool[Tensor, "batch position"]) -> bool:
    where = where.cpu()
    return torch.equal(one.cpu()[where], two.cpu()[where].to(one.dtype))


def _image(evidence: Evidence) -> str | None:
    """Check 4 at image tokens: they hold what the merger returns, row for row, and another picture moves the logits."""
    vlm, batch = evidence.vlm, evidence.batch
    if torch.equal(batch.logits[SHORT], batch.logits[OTHER]):
        return "another picture does not move the logits."
    if vlm.family.image_tokens == "cross":
        raise CannotCheck("its pictures enter by cross-attention and have no tokens in the sequence to compare.")
    if ("merger_out", 0) not in batch.seen:
        raise CannotCheck("this family has no merger to compare image tokens with.")
    entered = batch.only(("resid", 0)).cpu()[batch.image.cpu()]
    tokens, rows = batch.layout.token_of_row("merger_out"), batch.rows(("merger_out", 0)).cpu()
    if len(tokens) != len(rows):
        return f"merger = {vlm.family.merger!r} returns {len(rows)} rows, the record's layout has {len(tokens)}."
    with torch.no_grad():
        token = vlm.model.get_submodule(vlm.family.embeddings)(torch.tensor([[vlm.image_token_id]], device=vlm.device))[0].cpu()
    fed = (tokens >= 0) & ~batch.layout.blended[tokens.clamp(min=0)]  # what several rows are blended into equals none of them
    # Most families put the merger's rows in place of the image token's embedding, Molmo 2 adds them to it.
    if not any(close(vlm, rows[fed], entered[tokens[fed]] - base) for base in (torch.zeros_like(token), token)):
        return "resid 0 at image tokens is not what the merger returns: the image range or the order of its rows is wrong."
    return None


def _heads(evidence: Evidence) -> str | None:
    """The output projection on ``head`` gives ``attn_out``."""
    vlm, batch = evidence.vlm, evidence.batch
    layer = next((layer for site, layer in batch.seen if site == "head"), None)
    if layer is None:
        raise CannotCheck("no attention of this family has an output projection, so there is no site head.")
    with torch.no_grad():
        module = vlm.out_proj_of(layer)
        found = module(batch.only(("head", layer))) if module is not None else torch.zeros(1)
    attention = next(output for (site, at), (output,) in batch.seen.items() if site == "attn_out" and at == layer)
    if not close(vlm, attention, found.to(attention.device)):
        return f"the output projection on head {layer} does not give attn_out {layer}."
    return None


def _batch(evidence: Evidence) -> str | None:
    """Check 3: two items of different lengths in one left-padded batch equal the two alone."""
    vlm, batch = evidence.vlm, evidence.batch
    short = evidence.generated[1][0]
    if not close(vlm, short, batch.logits[SHORT]) or not close(vlm, evidence.alone, batch.logits[LONG]):
        return "items of different lengths give other logits in one left-padded batch than alone."
    return None


def _continuation(evidence: Evidence) -> str | None:
    """Check 5: a left-padded row continued from its cache equals what ``generate`` does with the item alone."""
    vlm = evidence.vlm
    if not close(vlm, evidence.generated[1][1], evidence.continued[SHORT]):
        return "a left-padded row continued from its cache gives other logits than generate: its positions are not counted alike."
    vlm.reset()
    for name, module in vlm.model.named_modules():
        if getattr(module, "rope_deltas", None) is not None:
            return f"{name or 'the model'} keeps rope_deltas of the last pass, and the record's keeps_positions does not name it."
    return None


def _edits(evidence: Evidence) -> str | None:
    """Check 2: replacing what a site holds moves the logits, replacing it by itself does not."""
    return unmoved(evidence.vlm, evidence.edited)


def unmoved(vlm: "VLM", result: EditPass) -> str | None:
    """The first point whose replacement does not move the logits, or that the replacement by itself moves them."""
    for (site, layer), logits in result.edited.items():
        if close(vlm, result.clean, logits):
            where = "at an item's pictures" if SITES[site].vision else "at the last position"
            return f"replacing {site} {layer} {where} does not move the logits."
    if not close(vlm, result.clean, result.itself):
        return f"replacing {_listed(list(result.edited))} by themselves moves the logits."
    return None


def _listed(points: list[Point]) -> str:
    return ", ".join(f"{site} {layer}" for site, layer in points)


def _pixels(evidence: Evidence) -> str | None:
    """Check 6: pixels changed inside one token's box change that token's rows at the patch embedding, and no others."""
    batch = evidence.batch
    if ("patches", 0) in batch.seen:
        rows, tokens = batch.rows(("patches", 0)).cpu(), batch.layout.token_of_row("vision")
    elif evidence.vlm.family.image_tokens == "sequence":
        rows = batch.only(("resid", 0)).cpu()[batch.image.cpu()]
        tokens = torch.arange(len(rows))
    else:
        raise CannotCheck("the record names no vision blocks, and pictures have no tokens in the sequence.")
    if len(rows) != len(tokens):
        return f"the vision tower receives {len(rows)} rows, the record's layout has {len(tokens)}."
    near = tolerance(evidence.vlm) * float(rows.float().std())
    return misplaced(rows, tokens, batch.layout, (SHORT, CHANGED), evidence.region[1], near)


_TAIL = 0.1
"""Share of the largest change up to which a neighbour's may be that of a resizing filter."""


def misplaced(
    rows: Float[Tensor, "row width"],
    tokens: Int[Tensor, " row"],
    layout: Layout,
    pair: tuple[int, int],
    region: Rectangle,
    near: float,
) -> str | None:
    """What is wrong with the map from pixels to tokens, if the second of a pair of pictures differs from the first in a region.

    A token whose box holds the whole region must change. One whose box does not come near it must not, but for the tails of the
    filters with which processors resize, some of them twice: a tenth of the largest change.

    Args:
        rows: What the tower's first block receives, for all pictures.
        tokens: The image token that each row feeds.
        layout: Of the batch.
        pair: The two pictures, counted over the batch.
        region: Left, top, right and bottom of the pixels that differ.
        near: The largest difference that counts as none.
    """
    plain, changed = (_rows_of(tokens, layout, picture) for picture in pair)
    if not torch.equal(plain[1], changed[1]):
        return "two pictures of one size have rows in different orders."
    size = (rows[plain[0]].float() - rows[changed[0]].float()).abs().amax(dim=1)
    n = int((layout.picture == pair[0]).sum())
    found = torch.bincount(plain[1][size > near], minlength=n) > 0
    plainly = torch.bincount(plain[1][size > max(near, _TAIL * float(size.max() if len(size) else 0.0))], minlength=n) > 0
    left, top, right, bottom = layout.boxes[layout.picture == pair[0]].unbind(dim=1)
    x, y = 0.3 * (right - left), 0.3 * (bottom - top)
    inside = (left <= region[0]) & (top <= region[1]) & (right >= region[2]) & (bottom >= region[3])
    beside = (left - x < region[2]) & (right + x > region[0]) & (top - y < region[3]) & (bottom + y > region[1])
    told = ~layout.blended[
        layout.picture == pair[0]
    ]  # OneVision blends rows of large pictures; they belong to tokens only roughly
    missing, extra = bool((inside & ~found & told).any()), bool((plainly & ~beside & told).any())
    if missing or extra:
        own = _few(inside.nonzero()[:, 0].tolist())
        others = _few((plainly if extra else found).nonzero()[:, 0].tolist()) or "none"
        return f"pixels changed inside the box of image token {own} change {others}: the map from pixels to tokens is wrong."
    return None


def _rows_of(tokens: Int[Tensor, " row"], layout: Layout, picture: int) -> tuple[Int[Tensor, " own"], Int[Tensor, " own"]]:
    """The numbers of a picture's rows, and the token within the picture that each feeds."""
    own = (layout.picture == picture).nonzero()[:, 0]
    numbers = ((tokens >= 0) & torch.isin(tokens, own)).nonzero()[:, 0]
    return numbers, tokens[numbers] - (own[0] if len(own) else 0)


def _few(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")


AT_LOAD: dict[str, tuple[str, Callable[[Evidence], str | None]]] = {
    "paths": ("every path leads to a module, and there are as many blocks as the config names", _paths),
    "logits": ("final norm and head on the last resid give the model's logits", _logits),
    "resid": ("every block receives what resid says, from the embeddings on", _resid),
    "image": ("image tokens hold what the merger returns, and another picture moves the logits", _image),
    "heads": ("the output projection on head gives attn_out", _heads),
    "batch": ("items of different lengths give the same logits in a left-padded batch as alone", _batch),
    "continuation": ("a left-padded row continued from its cache equals generate", _continuation),
    "edits": ("replacing a site moves the logits, replacing it by itself does not", _edits),
    "pixels": ("pixels changed inside one token's box change that token alone", _pixels),
}
"""The checks at load, in order: what holds when it passes, and the check."""
