"""What Watch sees is what the model's parts receive, and the model is left as it was found."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from deixis.benchmarks import Item
from deixis.hooks import Positions, Seen, Watch, WatchError
from deixis.hooks.pooling import mean_over
from deixis.models import VLM, Family
from tests.toys import N_LAYERS, grey, toy_item, toy_items, toy_vlm


@pytest.fixture(scope="module")
def vlm() -> VLM:
    return toy_vlm()


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(toy_items(5))


Kept = dict[tuple[str, int, str], Seen]


def watched(vlm: VLM, items: Sequence[Item], **arguments: Any) -> tuple[Kept, Tensor, dict[str, Tensor]]:
    """What was seen, the logits, and the roles of one forward pass."""
    inputs = vlm.prepare(items)
    roles = vlm.token_roles(inputs, items)
    vlm.reset()
    with torch.no_grad(), Watch(vlm, **arguments) as watch:
        watch.follow(roles)
        logits = vlm.model(**inputs).logits
        seen = watch.read()
    vlm.reset()
    return seen, logits, roles


def inputs_and_outputs(vlm: VLM, items: Sequence[Item]) -> tuple[list[Tensor], list[Tensor]]:
    """Input and output of every block, by hooks of the test's own."""
    entered: list[Tensor] = []
    left: list[Tensor] = []

    def note(_module: nn.Module, args: tuple[Any, ...], _kwargs: dict[str, Any], output: Any) -> None:
        entered.append(args[0].clone())
        left.append((output if isinstance(output, Tensor) else output[0]).clone())

    handles = [block.register_forward_hook(note, with_kwargs=True) for block in vlm.blocks]
    try:
        vlm.reset()
        with torch.no_grad():
            vlm.model(**vlm.prepare(items))
    finally:
        for handle in handles:
            handle.remove()
    return entered, left


def hooks_on(vlm: VLM) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in vlm.model.modules())


def test_the_toy_looks_at_its_picture(vlm: VLM) -> None:
    drawn, blank = toy_item(0), toy_item(0, images=(grey(),))
    logits = [watched(vlm, [item])[1][0, -1] for item in (drawn, blank)]
    assert float((logits[0] - logits[1]).abs().max()) > 0.5


def test_every_token_is_what_the_block_receives(vlm: VLM, items: list[Item]) -> None:
    entered, _ = inputs_and_outputs(vlm, items)
    seen, _, roles = watched(vlm, items, roles=("image", "text", "answer"), pool=None)
    for layer in range(N_LAYERS):
        for role in ("image", "text", "answer"):
            found = seen["resid", layer, role]
            torch.testing.assert_close(found.values, entered[layer][roles[role]], rtol=0, atol=0)
            assert found.counts.tolist() == roles[role].sum(dim=1).tolist()


def test_what_is_added_between_blocks_is_seen(vlm: VLM, items: list[Item]) -> None:
    """DeepStack adds to image tokens behind block 0: the block's output would be wrong there, and only there."""
    _, left = inputs_and_outputs(vlm, items)
    seen, _, roles = watched(vlm, items, roles=("image", "text"), pool=None)
    at_image = (seen["resid", 1, "image"].values - left[0][roles["image"]]).abs().max(dim=1).values
    assert float(at_image.min()) > 0.1
    torch.testing.assert_close(seen["resid", 1, "text"].values, left[0][roles["text"]], rtol=0, atol=0)


def test_norm_and_head_on_the_last_layer_give_the_logits(vlm: VLM, items: list[Item]) -> None:
    seen, logits, _ = watched(vlm, items, layers=[N_LAYERS], roles=("answer",))
    torch.testing.assert_close(vlm.logits(seen["resid", N_LAYERS, "answer"].values), logits[:, -1], rtol=1e-5, atol=1e-5)


def test_means_equal_those_taken_by_hand(vlm: VLM, items: list[Item]) -> None:
    entered, _ = inputs_and_outputs(vlm, items)
    seen, _, roles = watched(vlm, items, roles=("image", "object", "background", "text"))
    for role, mask in roles.items():
        if role not in ("image", "object", "background", "text"):
            continue
        for row in range(len(items)):
            tokens = entered[2][row].double().numpy()[mask[row].numpy()]
            expected = tokens.mean(axis=0) if len(tokens) else np.full(tokens.shape[1], np.nan)
            np.testing.assert_allclose(seen["resid", 2, role].values[row].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_an_item_without_a_box_has_no_object_and_gives_nan(vlm: VLM, items: list[Item]) -> None:
    seen, _, _ = watched(vlm, items, layers=[1], roles=("object", "image"))
    empty = [not item.objects for item in items]
    assert sum(empty) == 1
    assert seen["resid", 1, "object"].values.isnan().all(dim=1).tolist() == empty
    assert (seen["resid", 1, "object"].counts == 0).tolist() == empty
    assert not seen["resid", 1, "image"].values.isnan().any()


def test_bfloat16_is_averaged_in_float32_and_single_tokens_keep_their_bits() -> None:
    vlm = toy_vlm(torch.bfloat16)
    items = list(toy_items(3))
    entered, _ = inputs_and_outputs(vlm, items)
    seen, _, roles = watched(vlm, items, layers=[2], roles=("answer", "text"))
    assert seen["resid", 2, "answer"].values.dtype == torch.bfloat16
    assert torch.equal(seen["resid", 2, "answer"].values, entered[2][:, -1])
    for row in range(len(items)):
        exact = entered[2][row][roles["text"][row]].double().mean(dim=0)
        torch.testing.assert_close(seen["resid", 2, "text"].values[row].double(), exact, rtol=1e-5, atol=1e-6)
        assert float((exact.bfloat16().double() - exact).abs().max()) > 1e-4  # so that rounding to bfloat16 would be noticed


def test_positions_outside_the_role_may_hold_anything() -> None:
    hidden = torch.full((2, 3, 2), float("nan"))
    hidden[0, 1:] = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    hidden[1, 2] = 5.0
    mask = torch.tensor([[False, True, True], [False, False, True]])
    assert mean_over(hidden, Positions.of(mask)).tolist() == [[2.0, 4.0], [5.0, 5.0]]


def test_one_picture_of_several_is_a_role(vlm: VLM) -> None:
    pair = toy_item(0, images=(grey(), grey(128)))
    entered, _ = inputs_and_outputs(vlm, [pair, toy_item(1)])
    seen, _, roles = watched(vlm, [pair, toy_item(1)], layers=[0], roles=("image:1", "image:7"))
    expected = entered[0][0][roles["image:1"][0]].mean(dim=0)
    torch.testing.assert_close(seen["resid", 0, "image:1"].values[0], expected)
    assert seen["resid", 0, "image:1"].counts.tolist() == [16, 0]
    assert seen["resid", 0, "image:7"].values.isnan().all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sites": ("nowhere",)}, "sites holds 'nowhere', which is not one of: 'resid', 'attn_out', 'mlp_out', 'head', 'vision'"),
        ({"sites": ()}, r"sites=\(\) must be a non-empty list of: 'resid'"),
        ({"layers": [N_LAYERS + 1]}, f"layers holds {N_LAYERS + 1}; resid has the layers 0 to {N_LAYERS}"),
        ({"layers": [-1]}, "layers holds -1; resid has the layers 0 to"),
        ({"layers": []}, "layers is empty; resid has the layers 0 to"),
        ({"layers": "last"}, "layers='last' is neither 'all' nor a list"),
        ({"roles": ("picture",)}, "roles holds 'picture', which is not one of: 'answer', 'bos', 'image', 'object', 'background'"),
        ({"roles": ("answer:0",)}, "roles holds 'answer:0'"),
        ({"roles": ("image:x",)}, "roles holds 'image:x'"),
        ({"roles": "answer"}, "roles='answer' must be a non-empty list"),
    ],
)
def test_wrong_names_are_refused_before_anything_is_attached(vlm: VLM, arguments: dict[str, Any], message: str) -> None:
    before = hooks_on(vlm)
    with pytest.raises(ValueError, match=message):
        Watch(vlm, **arguments)
    assert hooks_on(vlm) == before


def test_hooks_come_off_after_an_exception_and_others_stay(vlm: VLM) -> None:
    def fail_while_watching() -> None:
        with Watch(vlm):
            assert hooks_on(vlm) == before + N_LAYERS + 1
            raise ZeroDivisionError

    own = vlm.blocks[1].register_forward_pre_hook(lambda *_: None)
    try:
        before = hooks_on(vlm)
        with pytest.raises(ZeroDivisionError):
            fail_while_watching()
        assert hooks_on(vlm) == before
        watched(vlm, [toy_item(0)])
        assert hooks_on(vlm) == before
    finally:
        own.remove()


def test_an_exception_inside_the_model_leaves_no_hook(vlm: VLM) -> None:
    before = hooks_on(vlm)
    inputs = vlm.prepare([toy_item(0)])
    with pytest.raises(RuntimeError):
        watch_runs(vlm, [toy_item(0)], inputs | {"pixel_values": inputs["pixel_values"][:, :7]})
    assert hooks_on(vlm) == before


def watch_runs(vlm: VLM, items: Sequence[Item], *passes: dict[str, Tensor], follow: bool = True, last: int = N_LAYERS) -> None:
    """Run the passes under one Watch and read once."""
    try:
        with torch.no_grad(), Watch(vlm, layers=[0, last], roles=("answer",)) as watch:
            if follow:
                watch.follow(vlm.token_roles(vlm.prepare(items), items))
            for inputs in passes:
                vlm.reset()
                vlm.model(**inputs)
            watch.read()
    finally:
        vlm.reset()


def test_a_pass_that_was_not_made_is_an_error(vlm: VLM) -> None:
    with pytest.raises(WatchError, match=f"never ran: resid 0, resid {N_LAYERS}; run the model"):
        watch_runs(vlm, [toy_item(0)])


def test_a_watched_module_that_never_ran_is_an_error() -> None:
    small = small_vlm(used=1)
    with pytest.raises(WatchError, match="never ran: resid 1; run the model"):
        read_small(small)


def test_leaving_without_a_pass_is_an_error(vlm: VLM) -> None:
    with pytest.raises(WatchError, match="never ran: resid 0, resid 2"), Watch(vlm, layers=[0, 2]):
        pass


def test_passes_are_told_apart(vlm: VLM) -> None:
    inputs = vlm.prepare([toy_item(0)])
    with pytest.raises(WatchError, match=r"resid 0 ran without follow\(\) before it"):
        watch_runs(vlm, [toy_item(0)], inputs, follow=False)
    with pytest.raises(WatchError, match="call follow, one forward pass, then read"):
        watch_runs(vlm, [toy_item(0)], inputs, inputs)
    watch_runs(vlm, [toy_item(0)], inputs)


def test_a_role_that_the_batch_lacks_is_refused(vlm: VLM) -> None:
    watch = Watch(vlm, roles=("answer", "object"))
    one = torch.tensor([[False, True]])
    with pytest.raises(ValueError, match="role 'object' is not among the batch's roles: answer"):
        watch.follow({"answer": one})
    with pytest.raises(ValueError, match="role 'answer' must mark exactly one position in each row"):
        watch.follow({"answer": torch.tensor([[True, True]]), "object": one})


class Block(nn.Module):
    """Takes its hidden states by keyword."""

    def forward(self, *, hidden_states: Tensor) -> Tensor:
        return hidden_states + 1


class Small(nn.Module):
    """A decoder of two blocks that runs only the first ``used`` of them."""

    def __init__(self, used: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.Identity()
        self.used = used

    def forward(self, hidden: Tensor) -> Tensor:
        for block in self.blocks[: self.used]:
            hidden = block(hidden_states=hidden)
        return self.norm(hidden)


def small_vlm(used: int) -> VLM:
    paths = dict.fromkeys(("final_norm", "head", "embeddings", "vision_blocks", "merger"), "norm")
    family = Family(architecture="Small", blocks="blocks", layout=lambda _vlm, _inputs, _sizes: [], **paths)
    return VLM(model=Small(used), processor=None, family=family, name="small")


def read_small(vlm: VLM) -> Kept:
    with Watch(vlm, roles=("answer",)) as watch:
        watch.follow({"answer": torch.tensor([[False, True]])})
        vlm.model(torch.zeros(1, 2, 3))
        return watch.read()


def test_a_tensor_passed_by_keyword_is_seen() -> None:
    seen = read_small(small_vlm(used=2))
    assert [seen["resid", layer, "answer"].values[0, 0].item() for layer in range(3)] == [0.0, 1.0, 2.0]
