"""What is prepared for each family, compared with each item alone, with generate, and with the text that was meant."""

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from deixis.benchmarks import Box
from deixis.models import FAMILIES, VLM
from deixis.models.inputs import IMAGE_MARK
from tests.models.pictures import noise, shown
from tests.models.tiny import TINY, pixtral, tiny_vlm
from tests.toys import toy_tokenizer

MIXING = [name for name, family in FAMILIES.items() if family.mixes_counts]
KEEPING = [name for name, family in FAMILIES.items() if family.keeps_positions is not None]


@pytest.fixture(scope="module", params=FAMILIES)
def vlm(request: pytest.FixtureRequest) -> VLM:
    return tiny_vlm(request.param)


def odd_items(vlm: VLM) -> list[Any]:
    """Items of different lengths, with one picture, two of different sizes, and none, as far as the family can."""
    items = [shown([noise(70, 45, 0)], "what"), shown([noise(40, 90, 1)], "what is the shape on the disk " * 3)]
    if vlm.family.mixes_counts:
        items.insert(1, shown([noise(33, 47, 2), noise(90, 40, 3)], "This that"))
        if not vlm.family.needs_picture:
            items.insert(0, shown([], "a star on a disk"))
    return items


def last_logits(vlm: VLM, items: list[Any]) -> Tensor:
    vlm.reset()
    with torch.inference_mode():
        logits = vlm.model(**vlm.prepare(items)).logits[:, -1].double()
    vlm.reset()
    return logits


def test_a_batch_of_odd_items_equals_each_alone(vlm: VLM) -> None:
    items = odd_items(vlm)
    together = last_logits(vlm, items)
    for row, item in enumerate(items):
        alone = last_logits(vlm, [item])[0]
        # Rounding of float32; Qwen3.5's linear attention adds up over the row, in another order behind padding.
        assert (together[row] - alone).abs().max() < 1e-4 * alone.std(), row


def test_another_picture_moves_the_logits_and_no_weight_is_zero(vlm: VLM) -> None:
    assert all(bool((weight != 0).any()) for weight in vlm.model.parameters())
    one, other = (last_logits(vlm, [shown([noise(70, 45, seed)])]) for seed in (0, 1))
    assert (one - other).abs().max() > 0.1 * one.std()


def test_the_model_gets_what_it_takes_and_padding_on_the_left(vlm: VLM) -> None:
    inputs = vlm.prepare(odd_items(vlm))
    assert set(inputs) <= vlm.accepts
    assert not {"inputs_embeds", "labels"} & set(inputs)
    assert {"input_ids", "attention_mask", "pixel_values"} <= set(inputs)
    mask = inputs["attention_mask"]
    assert bool(mask[:, -1].all())
    assert bool((mask.diff(dim=1) >= 0).all())
    assert inputs["pixel_values"].dtype == vlm.model.dtype


def test_positions_count_the_tokens_that_are_no_padding(vlm: VLM) -> None:
    inputs = vlm.prepare(odd_items(vlm))
    if vlm.family.keeps_positions is not None:
        assert "position_ids" not in inputs
        assert "mm_token_type_ids" in inputs
        return
    for mask, positions in zip(inputs["attention_mask"], inputs["position_ids"], strict=True):
        first = vlm.family.first_position
        assert positions[mask.bool()].tolist() == list(range(first, first + int(mask.sum())))


def test_every_position_is_padding_text_or_image_in_every_family(vlm: VLM) -> None:
    items = odd_items(vlm)
    inputs = vlm.prepare(items)
    roles = vlm.token_roles(inputs, items)
    total = roles["text"].int() + roles["image"].int() + (inputs["attention_mask"] == 0).int()
    assert bool((total == 1).all())
    assert torch.equal(roles["object"] | roles["background"], roles["image"])
    if vlm.family.image_tokens == "cross":
        assert not roles["image"].any()
        assert len(vlm.layout(inputs, items).boxes) > 0
        return
    numbers = [roles[f"image:{number}"] for number in range(max(len(item.images) for item in items))]
    assert torch.equal(torch.stack(numbers).sum(dim=0).bool(), roles["image"])
    for row, item in enumerate(items):
        assert [bool(mask[row].any()) for mask in numbers] == [number < len(item.images) for number in range(len(numbers))]


def test_object_tokens_show_the_box_and_background_tokens_do_not(vlm: VLM) -> None:
    box = Box(name="disk", left=10.0, top=8.0, right=30.0, bottom=20.0)
    item = replace(shown([noise(70, 45)]), objects=(box,))
    inputs = vlm.prepare([item])
    layout = vlm.layout(inputs, [item])
    roles = layout.token_roles([item])
    left, top, right, bottom = layout.boxes.unbind(dim=1)
    for inside, role in ((True, "object"), (False, "background")):
        mine = roles[role]
        shows = (left < box.right) & (right > box.left) & (top < box.bottom) & (bottom > box.top)
        assert mine.any()
        assert bool((shows[mine] == inside).all())
    if vlm.family.image_tokens == "sequence":
        mask = vlm.token_roles(inputs, [item])
        assert torch.equal(mask["object"][mask["image"]], roles["object"])


@pytest.mark.parametrize("architecture", [*(name for name, family in FAMILIES.items() if family.vision_cache), "pixtral"])
def test_vision_features_of_an_earlier_pass_give_the_same_logits_without_pixels(architecture: str) -> None:
    vlm = pixtral() if architecture == "pixtral" else tiny_vlm(architecture)
    inputs = vlm.prepare([shown([noise(70, 45)], "what"), shown([noise(40, 90, 1)], "what is this on the disk")])
    towers = (type(vlm.model), type(vlm.model.model))  # Pixtral's grid passes through the outer one unnamed
    names = {name for tower in towers for name in inspect.signature(tower.get_image_features).parameters} & set(inputs)
    rest = {name: value for name, value in inputs.items() if name != "pixel_values"}
    with torch.inference_mode():
        vlm.reset()
        seen = vlm.model(**inputs).logits[:, -1]
        vlm.reset()
        features = vlm.model.get_image_features(**{name: inputs[name] for name in names}, return_dict=True)
        cached = vlm.model(**rest, mm_encoder_outputs={"image": features}).logits[:, -1]
    vlm.reset()
    assert torch.equal(seen, cached)


def test_a_family_without_a_vision_cache_says_so() -> None:
    without = [name for name, family in FAMILIES.items() if not family.vision_cache]
    assert without == [name for name in FAMILIES if "mm_encoder_outputs" not in tiny_vlm(name).accepts]


@pytest.mark.parametrize("architecture", KEEPING)
def test_positions_of_an_earlier_batch_are_forgotten(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    with torch.inference_mode():
        vlm.model(**vlm.prepare([shown([noise(70, 45)])]))
    keeper = vlm.model.get_submodule(vlm.family.keeps_positions or "")
    assert keeper.rope_deltas is not None
    vlm.reset()
    assert keeper.rope_deltas is None


@pytest.mark.parametrize("architecture", MIXING)
def test_pictures_stand_where_the_prompt_marks_them(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    pictures = [noise(40, 40, 0), noise(40, 40, 1)]
    mixed = shown(pictures, f"This {IMAGE_MARK} red {IMAGE_MARK} blue")
    inputs = vlm.prepare([mixed])
    ids = inputs["input_ids"][0]
    roles = vlm.token_roles(inputs, [mixed])
    places = [vlm.tokenizer.decode(ids[roles["text"][0] & before]) for before in between(roles)]
    assert "This" in places[0]
    assert "red" not in places[0]
    assert "red" in places[1]
    assert "blue" not in places[1]
    assert "blue" in places[2]
    first = shown(pictures, "This red blue")
    started = vlm.token_roles(vlm.prepare([first]), [first])
    assert "This" not in vlm.tokenizer.decode(vlm.prepare([first])["input_ids"][0][started["text"][0] & between(started)[0]])


def between(roles: dict[str, Tensor]) -> list[Tensor]:
    """Positions before the first picture, between the two, and behind the second."""
    columns = torch.arange(roles["text"].shape[1])
    first, second = (roles[f"image:{number}"][0].nonzero()[:, 0] for number in (0, 1))
    return [columns < first.min(), (columns > first.max()) & (columns < second.min()), columns > second.max()]


def test_more_pictures_than_marks_and_the_other_way_round_are_refused(vlm: VLM) -> None:
    with pytest.raises(ValueError, match=r"has 2 pictures and 1 marks <image> in its prompt; give a mark for each, or none"):
        vlm.prepare([shown([noise(40, 40), noise(40, 40)], f"what is in {IMAGE_MARK}")])
    with pytest.raises(ValueError, match=r"has 0 pictures and 2 marks <image>"):
        vlm.prepare([shown([], f"{IMAGE_MARK} and {IMAGE_MARK}")])


def test_tokens_that_stand_for_pictures_are_refused_in_a_prompt(vlm: VLM) -> None:
    token = vlm.tokenizer.convert_ids_to_tokens(vlm.image_token_id)
    for placeholder in {token, getattr(vlm.processor, "image_token", token)} - {IMAGE_MARK}:
        with pytest.raises(ValueError, match=r"has the image token .* in its prompt; take it out, or write <image>"):
            vlm.prepare([shown([noise(40, 40)], f"look at {placeholder} here")])


def test_a_prompt_beyond_the_context_is_refused(vlm: VLM) -> None:
    context = vlm.text_config.max_position_embeddings
    with pytest.raises(ValueError, match=rf"does not fit the model's context of {context}; shorten it"):
        vlm.prepare([shown([noise(40, 40)], "this " * (context + 1))])


@pytest.mark.parametrize("architecture", [name for name, family in FAMILIES.items() if family.needs_picture])
def test_no_picture_where_one_is_needed_is_refused(architecture: str) -> None:
    with pytest.raises(ValueError, match=f"has no picture, and {architecture} takes no prompt without one"):
        tiny_vlm(architecture).prepare([shown([noise(40, 40)]), shown([])])


@pytest.mark.parametrize("architecture", [name for name, family in FAMILIES.items() if not family.mixes_counts])
def test_a_batch_that_would_change_its_items_is_refused(architecture: str) -> None:
    vlm = tiny_vlm(architecture)
    one, two = shown([noise(40, 40)]), shown([noise(40, 40), noise(40, 40)])
    with pytest.raises(ValueError, match=rf"items with 0 and 1 and 2 pictures, for which {architecture} gives other results"):
        vlm.prepare([one, two, shown([])])
    assert len(vlm.prepare([two, two])["input_ids"]) == 2
    assert "pixel_values" not in vlm.prepare([shown([])])


@pytest.mark.parametrize(("pictures", "silent"), [((), (1,)), ((noise(40, 40),), ())], ids=["none", "one"])
def test_layers_that_do_not_run_are_named_before_they_do_not(pictures: tuple[Any, ...], silent: tuple[int, ...]) -> None:
    vlm = tiny_vlm("MllamaForConditionalGeneration")
    ran: set[int] = set()
    hooks = [block.register_forward_hook(lambda *_, i=i: ran.add(i)) for i, block in enumerate(vlm.blocks)]
    item = shown(pictures)
    last_logits(vlm, [item])
    for hook in hooks:
        hook.remove()
    assert vlm.family.optional_layers is not None
    assert vlm.family.optional_layers(vlm, vlm.prepare([item])) == silent
    assert set(range(vlm.n_layers)) - ran == set(silent)


def test_without_a_chat_template_the_way_out_is_named() -> None:
    vlm = TINY["LlavaForConditionalGeneration"]()
    vlm.processor.chat_template = None
    with pytest.raises(
        ValueError, match=r"has no chat template; set processor\.chat_template .*\(its tokenizer's, if that writes"
    ):
        vlm.prepare([shown([noise(40, 40)])])
    vlm.processor.tokenizer.chat_template = None
    with pytest.raises(ValueError, match=r"has no chat template; set processor\.chat_template to the one .* was tuned with\.$"):
        vlm.prepare([shown([noise(40, 40)])])


def test_a_family_without_a_template_gets_pictures_and_text_as_they_are() -> None:
    vlm = tiny_vlm("PaliGemmaForConditionalGeneration")
    inputs = vlm.prepare([shown([noise(40, 40)], "what is this")])
    assert vlm.tokenizer.decode(inputs["input_ids"][0]) == "<image>" * 16 + "<bos>what is this\n"


def test_the_opening_token_is_not_written_twice() -> None:
    vlm = TINY["LlavaForConditionalGeneration"]()
    tokenizer = toy_tokenizer(("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<image>", "<s>"), None)
    tokenizer.bos_token = "<s>"
    tokenizer._tokenizer.post_processor = opening(tokenizer)
    vlm.processor.tokenizer = tokenizer
    assert vlm.tokenizer.decode(vlm.tokenizer("a").input_ids) == "<s>a"
    vlm.processor.chat_template = "<s>" + vlm.processor.chat_template
    vlm.model.config.image_token_index = tokenizer.convert_tokens_to_ids("<image>")
    vlm.processor.image_token_id = vlm.model.config.image_token_index
    ids = vlm.prepare([shown([noise(40, 40)])])["input_ids"][0]
    assert (ids == tokenizer.bos_token_id).sum() == 1


def opening(tokenizer: Any) -> Any:
    from tokenizers.processors import TemplateProcessing

    token = tokenizer.bos_token
    return TemplateProcessing(single=f"{token} $A", special_tokens=[(token, tokenizer.bos_token_id)])
