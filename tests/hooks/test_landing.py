"""What a batch keeps lands in one block of memory that belongs to that batch alone."""

import pytest
import torch

from deixis.hooks import Watch
from deixis.hooks.landing import Landing, Shape
from deixis.models import VLM
from tests.toys import toy_item, toy_vlm

A, B, C = (("resid", 0, role) for role in ("answer", "image", "object"))


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


def test_arrays_lie_apart_and_begin_at_aligned_places():
    shapes = {A: Shape(3, 5, torch.float32), B: Shape(2, 7, torch.bfloat16), C: Shape(0, 4, torch.float32)}
    landing = Landing(shapes, pinned=False)
    a, b = landing.place(A, 5, torch.float32), landing.place(B, 7, torch.bfloat16)
    assert a is not None
    assert b is not None
    landing.fetch(torch.arange(15, dtype=torch.float32).reshape(3, 5), a)
    landing.fetch(torch.full((2, 7), 2.5, dtype=torch.bfloat16), b)
    landing.wait()
    assert a.flatten().tolist() == list(range(15))
    assert (b == 2.5).all()
    assert b.data_ptr() - a.data_ptr() == 64  # 60 bytes, filled up
    empty = landing.place(C, 4, torch.float32)
    assert empty is not None
    assert empty.shape == (0, 4)


def test_what_was_not_foreseen_has_no_place():
    landing = Landing({A: Shape(3, 5, torch.float32)}, pinned=False)
    assert landing.place(B, 5, torch.float32) is None
    assert landing.place(A, 6, torch.float32) is None
    assert landing.place(A, 5, torch.float16) is None


@pytest.mark.parametrize("pool", ["mean", None])
@torch.inference_mode()
def test_a_batch_lands_in_one_block_and_the_next_one_leaves_it_alone(vlm: VLM, pool: str | None):
    sites = ("resid", "mlp_out", "head", "vision", "merger_out")
    watch = Watch(vlm, sites=sites, roles=("answer", "image", "object"), pool=pool)
    batches = [[toy_item(number), toy_item(number + 1)] for number in (0, 2, 4)]
    read = []
    for items in batches:
        inputs = vlm.prepare(items)
        vlm.reset()
        with watch:
            watch.expect(inputs, items)
            vlm.model(**inputs)
            read.append(watch.read())
    blocks = [{seen.values.untyped_storage().data_ptr() for seen in found.values() if seen.values.numel()} for found in read]
    assert len(blocks[0]) > 10  # the first batch, from which the shapes are learned
    assert len(blocks[1]) == len(blocks[2]) == 1
    assert blocks[1] != blocks[2]
    for items, found in zip(batches, read, strict=True):
        fresh = Watch(vlm, sites=sites, roles=("answer", "image", "object"), pool=pool)
        inputs = vlm.prepare(items)
        vlm.reset()
        with fresh:
            fresh.expect(inputs, items)
            vlm.model(**inputs)
            for name, seen in fresh.read().items():
                torch.testing.assert_close(found[name].values, seen.values, rtol=0, atol=0, equal_nan=True)
                assert found[name].counts.tolist() == seen.counts.tolist()
    vlm.reset()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.inference_mode()
def test_what_lands_from_a_gpu_is_what_was_there(vlm: VLM):
    moved = toy_vlm()
    moved.model.cuda()
    items = [toy_item(0), toy_item(1)]
    watch = Watch(moved, roles=("answer", "image"), pool=None)
    found = {}
    for _ in range(3):
        inputs = moved.prepare(items)
        moved.reset()
        with watch:
            watch.expect(inputs, items)
            moved.model(**inputs)
            found = watch.read()
    assert all(seen.values.is_pinned() for seen in found.values())
    with Watch(vlm, roles=("answer", "image"), pool=None) as here:
        inputs = vlm.prepare(items)
        vlm.reset()
        here.expect(inputs, items)
        vlm.model(**inputs)
        for name, seen in here.read().items():
            torch.testing.assert_close(found[name].values, seen.values, rtol=1e-3, atol=1e-3)
