"""A record for a class that has none, found by the structure of a model: it passes the checks that others pass, or is refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from deixis.models.checking.items import small_item
from deixis.models.checks import check_vlm
from deixis.models.families import FAMILIES, Family, LayoutFunction
from deixis.models.sites import SiteError, returned
from deixis.models.vlm import VLM

_FAULTS = (ValueError, TypeError, RuntimeError, AttributeError, LookupError)
_SAME = 1e-4
"""Difference, as a share of the spread, up to which a row of the tower is an image token's."""


class ResolveError(ValueError):
    """A model's structure does not tell where its parts are; the message ends with the record to write."""


@dataclass
class _Parts:
    """What has been found of a record so far."""

    found: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None

    def take(self, name: str, candidates: "list[Any]", what: str) -> Any:
        """Keep the only candidate; note the first part of which there is none, or more than one."""
        distinct = list(dict.fromkeys(candidates))
        if len(distinct) == 1:
            self.found[name] = distinct[0]
            return distinct[0]
        listed = ", ".join(map(str, distinct)) or "none"
        self.problem = self.problem or f"{what} cannot be told (found: {listed})"
        return None


def resolve(vlm_of: Any, model: Any, architecture: str) -> VLM:
    """Find the parts of a model whose class has no record, and check them by effect.

    Args:
        vlm_of: Makes the :class:`VLM` of a record.
        model: Of transformers, in evaluation mode.
        architecture: The name of its class.

    Raises:
        ResolveError: A part cannot be told, or the record that was found fails a check.
    """
    parts = _Parts()
    _find_decoder(model, parts)
    _find_tower(model, parts)
    positions = [name for name, module in model.named_modules() if hasattr(module, "rope_deltas")]
    parts.found["keeps_positions"] = positions[0] if positions else None
    if parts.problem is not None:
        raise _unresolved(architecture, parts.problem, parts.found)
    problem = "no known layout of image tokens fits"
    for layout in _layouts():
        record = Family(
            architecture=architecture,
            name=architecture,
            merger=None,
            layout=layout,
            checked_with="by structure",
            vision_cache=False,  # nobody has seen whether its pictures can be shown to the tower one by one
            **parts.found,
        )
        try:
            vlm_of(record).prepare([small_item()])
            merger = _merger(vlm_of(record))
        except _FAULTS:
            continue  # another family's way of cutting pictures
        vlm = vlm_of(replace(record, merger=merger))
        failed = next((check.said for check in check_vlm(vlm) if check.passed is False), None)
        if failed is None:
            return vlm
        problem = f"with {layout.__name__}: {failed}"
    raise _unresolved(architecture, problem, parts.found)


def _layouts() -> Iterator[LayoutFunction]:
    yield from dict.fromkeys(family.layout for family in FAMILIES.values())


def _find_decoder(model: Any, parts: _Parts) -> None:
    """The blocks are the list beside the embeddings; norm, attention and MLP are told by what they hold."""
    config = model.config.get_text_config()
    names = {module: name for name, module in model.named_modules()}
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    path = parts.take("embeddings", [names[embeddings]] if embeddings in names else [], "the embeddings")
    parts.take("head", [names[head]] if head in names else [], "the head")
    if path is None:
        return
    parent_path = path.rpartition(".")[0]
    parent = model.get_submodule(parent_path)
    prefix = f"{parent_path}." if parent_path else ""
    lists = {name: child for name, child in parent.named_children() if isinstance(child, nn.ModuleList)}
    blocks = [name for name, child in lists.items() if len(child) == config.num_hidden_layers]
    chosen = parts.take("blocks", [prefix + name for name in blocks], f"the list of {config.num_hidden_layers} decoder blocks")
    norms = [name for name, child in parent.named_children() if _is_norm(child, config.hidden_size)]
    parts.take("final_norm", [prefix + name for name in norms], "the final norm")
    if chosen is not None:
        _find_in_blocks(lists[blocks[0]], config.hidden_size, parts)


def _find_in_blocks(blocks: nn.ModuleList, width: int, parts: _Parts) -> None:
    attention = dict.fromkeys(name for block in blocks for name in _attentions(block))
    parts.found["attention"] = tuple(attention)
    projections = {
        name
        for block in blocks
        for own in _attentions(block)
        if "linear" not in own  # its state mixes the heads: there is no output of each
        for name, child in block.get_submodule(own).named_children()
        if getattr(child, "out_features", None) == width and name in _out_projections()
    }
    parts.found["out_proj"] = tuple(sorted(projections))
    others = [
        name
        for block in blocks
        for name, child in block.named_children()
        if name not in attention and any(weight.ndim > 1 for weight in child.parameters())
    ]
    parts.take("mlp", ["mlp"] if "mlp" in others else others, "the MLP of a block")
    if not attention:
        parts.problem = parts.problem or "the attention of a block cannot be told (no child is named so)"


def _attentions(block: nn.Module) -> list[str]:
    return [name for name, child in block.named_children() if "att" in name and any(w.ndim > 1 for w in child.parameters())]


def _out_projections() -> set[str]:
    return {name for family in FAMILIES.values() for name in family.out_proj} | {"o_proj", "out_proj", "dense", "wo"}


def _is_norm(module: nn.Module, width: int) -> bool:
    weights = list(module.parameters())
    return "norm" in type(module).__name__.lower() and bool(weights) and all(weight.shape == (width,) for weight in weights)


def _find_tower(model: Any, parts: _Parts) -> None:
    """The list of vision blocks is as long as the vision config says, and lies outside the decoder."""
    vision = next((value for name in ("vision_config", "vit_config") if (value := getattr(model.config, name, None))), None)
    depth = next((n for name in ("num_hidden_layers", "depth", "num_layers") if (n := getattr(vision, name, None))), None)
    decoder = parts.found.get("blocks", "").rpartition(".")[0]
    found = {
        name: child
        for name, child in model.named_modules()
        if isinstance(child, nn.ModuleList) and len(child) == depth and not name.startswith(f"{decoder}.")
        if _attentions(child[0])
    }
    path = parts.take("vision_blocks", list(found), f"the list of {depth} blocks of the vision tower")
    if path is not None:
        parts.take("vision_attention", _attentions(found[path][0]), "the attention of a vision block")


def _merger(vlm: VLM) -> str | None:
    """The outermost module outside the decoder that returns the image tokens' ``resid`` at layer 0, in whatever order."""
    item = small_item()
    inputs = vlm.prepare([item])
    image = vlm.token_roles(inputs, [item])["image"]
    kept: dict[str, Tensor] = {}
    entered: list[Tensor] = []
    decoder = vlm.family.blocks.rpartition(".")[0]

    def keep(name: str) -> Any:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            try:
                tensor = returned(output, name, vision=True)[1]
            except SiteError:
                return
            if tensor.shape[-1] == vlm.d_model and name not in kept:
                kept[name] = tensor.detach().reshape(-1, vlm.d_model)

        return hook

    outside = [name for name, _ in vlm.model.named_modules() if name and name != decoder and not name.startswith(f"{decoder}.")]
    handles = [vlm.model.get_submodule(name).register_forward_hook(keep(name)) for name in outside]
    handles.append(vlm.blocks[0].register_forward_pre_hook(lambda _m, args: entered.append(args[0].detach())))
    try:
        vlm.reset()
        with torch.no_grad():
            vlm.model(**inputs, use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
        vlm.reset()
    tokens = entered[0][image]
    fitting = [name for name, rows in kept.items() if len(tokens) and _holds(rows, tokens)]
    # Line ends that the model puts between rows of a picture come from elsewhere: most tokens decide.
    return min(fitting, key=lambda name: (name.count("."), len(name)), default=None)


def _holds(rows: Tensor, tokens: Tensor) -> bool:
    nearest = torch.cdist(tokens.double(), rows.double()).amin(dim=1)
    return bool((nearest <= _SAME * tokens.double().norm(dim=1)).double().mean() > 0.6)


def _unresolved(architecture: str, problem: str, found: Mapping[str, Any]) -> ResolveError:
    return ResolveError(
        f"no family record for {architecture!r} (known: {', '.join(FAMILIES)}), and its structure does not tell one: "
        f"{problem.rstrip('.')}. Write this record in deixis/models/families.py, with every ... filled in:\n"
        f"{record_text(architecture, found)}"
    )


def record_text(architecture: str, found: Mapping[str, Any]) -> str:
    """The source of a record, with ``...`` for what is not known."""
    needed = {"architecture", "name", "blocks", "final_norm", "head", "embeddings", "mlp", "attention", "out_proj"}
    needed |= {"vision_blocks", "vision_attention", "merger", "layout", "keeps_positions"}
    known = {"architecture": architecture} | dict(found)
    lines = [
        f"    {part.name}={known[part.name]!r}," if part.name in known else f"    {part.name}=...,"
        for part in fields(Family)
        if part.name in needed
    ]
    return "\n".join(["Family(", *lines, ")"])
