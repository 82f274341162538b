"""What a recording would take, in words."""

from typing import TYPE_CHECKING

from deixis.console import Outcome, records, table

if TYPE_CHECKING:
    from deixis.activations.estimate import Estimate

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def estimated(found: "Estimate") -> Outcome:
    """Tokens, disk, operations and hours of an estimate."""
    frame = found.to_frame().drop(columns="model")
    data = {
        "model": found.model,
        "items": found.n_items,
        "sampled": found.n_sampled,
        "tokens": {"mean": found.tokens_mean, "most": found.tokens_most, "image": found.image_tokens_mean},
        "shards": found.n_shards,
        "bytes": found.bytes,
        "free_bytes": found.free_bytes,
        "weight_bytes": found.size.weight_bytes,
        "pflop": {"vision": found.flop_vision / 1e15, "prompt": found.flop_prompt / 1e15, "answers": found.flop_answers / 1e15},
        "tflops": found.tflops,
        "hours": found.hours,
        "disk": records(frame),
    }
    room = "fits" if found.fits else "does NOT fit"
    weights = f"{found.size.total / 1e9:.3g} x 10^9 parameters, {size(found.size.weight_bytes)} of weights"
    shares = [part / found.flop for part in (found.flop_vision, found.flop_prompt, found.flop_answers)]
    split = f"pictures {shares[0]:.0%}, prompts {shares[1]:.0%}, answers at most {shares[2]:.0%}"
    lines = (
        f"{found.n_items} items for {found.model}: {weights}",
        f"tokens an item: {found.tokens_mean:.0f} on average, "
        f"{found.tokens_most} at most, {found.image_tokens_mean:.0f} of pictures "
        f"(from {found.n_sampled} items)",
        f"disk: {size(found.bytes)} in {found.n_shards} shards, which {room} the {size(found.free_bytes)} that are free",
        f"work: {found.flop / 1e15:.3g} PFLOP ({split}): {_duration(found.hours)} at {found.tflops:g} TFLOP/s",
    )
    shown = frame.assign(row_bytes=frame["row_bytes"].map(size), bytes=frame["bytes"].map(size), rows=frame["rows"].round(1))
    headings = {"what": "kept", "arrays": "arrays", "rows": "rows an item", "row_bytes": "a row", "bytes": "disk"}
    return Outcome(data, (*lines, table(shown, headings)))


def size(n_bytes: float | int) -> str:
    """Bytes in decimal units, three digits."""
    unit = 0
    while n_bytes >= 999.5 and unit < len(_UNITS) - 1:
        n_bytes, unit = n_bytes / 1000, unit + 1
    return f"{n_bytes:.3g} {_UNITS[unit]}"


def _duration(hours: float) -> str:
    if hours >= 1:
        return f"{hours:.3g} hours"
    return f"{hours * 60:.2g} minutes" if hours * 60 >= 1 else f"{hours * 3600:.2g} seconds"
