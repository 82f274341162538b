"""Layouts at the sizes of released models: tiny weights, the real geometry of pictures, tiles and patches."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest

from deixis.models import VLM
from tests.models.pictures import noise, passed_by, places_seen, reading_colours, shades, shown
from tests.models.tiny import (
    gemma3,
    idefics3,
    internvl,
    llava,
    llava_next,
    llava_onevision,
    mllama,
    molmo2,
    ovis2,
    paligemma,
    smolvlm,
)

NEXT = ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008))
REAL: Mapping[str, tuple[Callable[[], VLM], int]] = {
    "InternVL 3": (partial(internvl, 448, 14, 12), 256),
    "Gemma 3": (partial(gemma3, 896, 14, 256), 256),
    "Ovis2": (partial(ovis2, 448, 14, 9), 256),
    "LLaVA 1.5": (partial(llava, 336, 14), 576),
    "LLaVA-NeXT": (partial(llava_next, 336, 14, NEXT), 576 + 48 * 49),
    "OneVision": (partial(llava_onevision, 384, 14, 9), 729 + 54 * 55),
    "Idefics3": (partial(idefics3, 1456, 364, 14, 2), 17 * 169),
    "SmolVLM2": (partial(smolvlm, 2048, 512, 16, 4), 17 * 64),
    "PaliGemma 448": (partial(paligemma, 448, 14), 1024),
    "Molmo2": (partial(molmo2, 378, 14, 8, 4), 2 * 14 * 14),
    "Llama 3.2": (partial(mllama, 560, 14), 1601),
}
"""Models by the geometry that they were released with, and the image tokens of a square picture as large as one tile."""
SIDE = {"InternVL 3": 448, "Ovis2": 448, "LLaVA-NeXT": 672, "OneVision": 768, "Molmo2": 378, "Llama 3.2": 560}


@pytest.mark.parametrize("name", REAL)
def test_a_square_picture_makes_as_many_tokens_as_the_released_model(name: str) -> None:
    make, tokens = REAL[name]
    vlm, side = make(), SIDE.get(name, 448)
    items = [shown([noise(side, side)])]
    assert len(vlm.layout(vlm.prepare(items), items).boxes) == tokens


@pytest.mark.parametrize("name", REAL)
def test_colours_say_where_tokens_lie_at_real_sizes(name: str) -> None:
    vlm, size = reading_colours(REAL[name][0]()), (640, 427)
    item = shown([shades(*size)])
    layout = vlm.layout(vlm.prepare([item]), [item])
    boxes, fed = layout.boxes.numpy(), layout.token_of_row("vision").numpy()
    sizes = boxes[:, 2:] - boxes[:, :2]
    whole = ~np.isnan(sizes[:, 0])
    if vlm.family.image_tokens == "cross":  # the canvas has much padding; half-padded tokens have mixed colours
        whole = (sizes > 0.99 * np.nanmax(sizes, axis=0)).all(axis=1)
    looking = (fed >= 0) & whole[fed]
    at = places_seen(vlm, passed_by(vlm, [item])["vision"][looking], size)
    token = fed[looking]
    sums = np.stack([np.bincount(token, at[:, axis], len(boxes)) for axis in (0, 1)], axis=1)
    seen = sums / np.maximum(np.bincount(token, minlength=len(boxes)), 1)[:, None]
    off = np.abs(seen - (boxes[:, :2] + boxes[:, 2:]) / 2)[np.unique(token)]
    # A shade of 256 is 2.5 pixels wide; tokens at the edge of padding see some of it.
    assert np.quantile(off, 0.95) < 1.5
    assert np.median(off) < 0.7
