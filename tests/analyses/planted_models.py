"""Models made from pico in which a case of the encoding gap is planted, so that the truth is known without training."""

from copy import deepcopy
from typing import Any

import torch
from PIL import Image

from deixis.models import VLM, wrap
from tests.analyses.pico_run import pico


def blind() -> VLM:
    """pico whose pictures are worth nothing: every image token is the same, whatever is shown: it answers by its prior."""
    model = deepcopy(pico().model)
    with torch.no_grad():
        for merger in (model.model.visual.merger, *model.model.visual.deepstack_merger_list):
            merger.linear_fc2.weight.zero_()
    return wrap(model, pico().processor, name="blind", check=False)


def notices() -> VLM:
    """pico that sees whether there is a picture and nothing else: for anything but a uniform one it is shown the same scene."""
    return wrap(pico().model, OneScene(pico().processor), name="notices", check=False)


class OneScene:
    """A processor that shows one fixed picture in place of every one that is not uniform."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        # Half dark, half light: unlike a blank one, and the same for all.
        self._shown = Image.new("RGB", (256, 256), (30, 30, 30))
        self._shown.paste((235, 235, 235), (0, 0, 256, 128))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, *args: Any, images: Any = None, **kwargs: Any) -> Any:
        shown = images and [[self._replaced(picture) for picture in group] for group in images]
        return self._processor(*args, images=shown, **kwargs)

    def _replaced(self, picture: Image.Image) -> Image.Image:
        uniform = all(low == high for low, high in picture.getextrema())
        return picture if uniform else self._shown.resize(picture.size)
