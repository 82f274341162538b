"""SpaceNum as it was published (``Sterzhang/spacenum-bench`` on the Hugging Face hub): its JSON rows as items.

A row has ``task`` (``dynamic-n2s``), ``subtask`` (``Rotate Right (R)``), ``QA_prompt``, ``GT_answer`` (a letter), ``meta_info``
with ``option_meta_pattern`` (``{"A": "correct", "B": "less_wrong", ...}``) and ``option_meta_info`` (``{"A": "50", ...}``),
``image`` (relative paths) and ``QA_prompt_with_image_tag``. What a row says of its room or layout is all that is known: there
are no boxes and no poses.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deixis.benchmarks.images import ImageHandle
from deixis.benchmarks.item_json import ItemsError, shown
from deixis.benchmarks.items import IMAGE_MARK, Item, Option
from deixis.benchmarks.spacenum.actions import ACTION, Action
from deixis.benchmarks.spacenum.options import letter_forms

COLUMNS = ("task", "subtask", "QA_prompt", "GT_answer", "meta_info", "image", "QA_prompt_with_image_tag")
_NEEDED = ("task", "subtask", "QA_prompt", "GT_answer", "image")
_META = ("option_meta_pattern", "option_meta_info")
PATTERNS = {
    "transition": {name: name for name in ("correct", "less_correct", "less_wrong", "wrong")},
    "layout": {"correct": "correct"}
    | {
        f"{before}{what}{after}": kind
        for kind, words in {"position": ("position", "pos"), "size": ("size",), "both": ("both", "position_size")}.items()
        for what in words
        for before, after in (("", ""), ("wrong_", ""), ("", "_wrong"))
    },
}
"""Words of ``option_meta_pattern`` by setting, and the kind of option that each stands for; the layout's words are not known to
be the publishers' own, so all likely spellings are there."""
_SETTINGS = {"transition": r"dynamic|transition|exploration", "layout": r"static|layout"}
_WAYS = {"num2space": r"n2s|num2space|num_to_space", "space2num": r"s2n|space2num|space_to_num"}
_ACTION = re.compile(r"\b(?P<verb>move|rotate|turn)?[\s_]*(?P<way>forward|backward|back|left|right|up|down)\b", re.IGNORECASE)
_SCALES = {"desk": r"desk(?:top)?|tabletop", "room": r"room"}
_TAG = re.compile(r"<\|?\s*(?:image|img)(?:[\s_-]*(?:pad|placeholder|token))?[\s_-]*(?P<number>\d*)\s*\|?>", re.IGNORECASE)
_FLOOR_PLAN = re.compile(r"FloorPlan\d+")


def is_published(record: Mapping[str, Any]) -> bool:
    """Whether a record is of this form and not one of the library's own."""
    return "QA_prompt" in record or "GT_answer" in record


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row, as far as it says what is asked; pictures are names still."""

    number: int
    """In the file, from 1."""
    kind: str
    direction: str
    subtask: str
    prompt: str
    images: tuple[Any, ...]
    options: tuple[Option, ...]
    truth: str
    groups: Mapping[str, str]

    @property
    def keys(self) -> set[str]:
        """What it shares with other rows of its scene: pictures, or the name of a simulator's room."""
        names = [image for image in self.images if isinstance(image, str)]
        return {*names, *(found for name in names for found in _FLOOR_PLAN.findall(name))}


def read_row(record: Mapping[str, Any], number: int, allow_unknown: bool = False) -> Row:
    """A row of the file.

    Args:
        record: Its columns.
        number: Of the row, from 1.
        allow_unknown: Leave out columns, actions and words of patterns that are not known.

    Raises:
        ItemsError: It can't be used; the message says why.
    """
    _check_columns(record, allow_unknown)
    task, subtask = (_text(record, name) for name in ("task", "subtask"))
    kind, direction = _one_of(task, _SETTINGS, "task"), _one_of(task, _WAYS, "task")
    images = record["image"] if isinstance(record["image"], list | tuple) else [record["image"]]
    if not images:
        raise ItemsError("image names no picture")
    prompt = _marked(record, len(images))
    options = _options(record, kind, prompt, allow_unknown)
    truth = _text(record, "GT_answer").strip().strip("().").upper()
    _check_truth(truth, options)
    groups = {"kind": kind, "direction": direction, "subtask": subtask, "letter": truth, "permutation": "0"}
    own = _action_groups(subtask) if kind == "transition" else _layout_groups(task, subtask, images, len(options))
    if not own and not allow_unknown:
        raise ItemsError(f"subtask is {shown(subtask)}, which says no {'action' if kind == 'transition' else 'kind of map'}")
    return Row(
        number=number,
        kind=kind,
        direction=direction,
        subtask=subtask,
        prompt=prompt,
        images=tuple(images),
        options=options,
        truth=truth,
        groups=groups | own,
    )


def row_item(row: Row, images: Sequence[ImageHandle], scene: str) -> Item:
    """The item of a row whose pictures are there."""
    task = f"{row.kind}-{row.direction}"
    action = ACTION.get(row.groups.get("action", ""))
    right = next(option for option in row.options if option.label == row.truth)
    known = action is not None and right.value is not None
    facts = {"row": row.number} | ({} if action is None else {"action": action.name, "unit": action.unit})
    if known:
        facts |= {"magnitude": right.value, "magnitudes": [option.value for option in row.options]}
    return Item(
        id=f"spacenum/published-{row.number:05d}/{task}",
        benchmark="spacenum",
        task=task,
        language="en",
        images=tuple(images),
        prompt=row.prompt,
        options=row.options,
        truth=row.truth,
        targets=_targets(action, right.value) if action is not None and right.value is not None else {},
        groups={"scene": scene, **row.groups},
        facts=facts,
    )


def scenes(rows: Sequence[Row]) -> list[str]:
    """The scene of each row: rows that share a picture or a simulator's room, also through others, have the same.

    So a split by scene never has one picture on both sides.
    """
    above: dict[str, str] = {}

    def top(key: str) -> str:
        while above.setdefault(key, key) != key:
            key = above[key]
        return key

    keys = [sorted(row.keys) or [f"row {row.number}"] for row in rows]
    for mine in keys:
        first = top(mine[0])
        for key in mine[1:]:
            above[top(key)] = first
    least: dict[str, str] = {}
    for key in sorted(above, key=lambda key: (_FLOOR_PLAN.fullmatch(key) is None, key)):
        least.setdefault(top(key), key)
    return [least[top(mine[0])] for mine in keys]


def _check_columns(record: Mapping[str, Any], allow_unknown: bool) -> None:
    missing = [name for name in _NEEDED if record.get(name) is None]
    if missing:
        raise ItemsError(f"the column {missing[0]!r} is missing; needed are {', '.join(_NEEDED)}")
    meta = record.get("meta_info") or {}
    if not isinstance(meta, Mapping) or not all(isinstance(meta.get(name, {}), Mapping | None) for name in _META):
        raise ItemsError(f"meta_info is {shown(meta)}, not an object with the objects {' and '.join(_META)}")
    unknown = [name for name in record if name not in COLUMNS] + [f"meta_info.{name}" for name in meta if name not in _META]
    if unknown and not allow_unknown:
        raise ItemsError(f"the column {unknown[0]!r} is not known; known are {', '.join(COLUMNS)}")


def _text(record: Mapping[str, Any], name: str) -> str:
    if not isinstance(record[name], str) or not record[name].strip():
        raise ItemsError(f"{name} is {shown(record[name])}, not a text")
    return record[name]


def _one_of(text: str, patterns: Mapping[str, str], name: str) -> str:
    found = [known for known, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE)]
    if len(found) != 1:
        words = " or ".join(pattern.split("|")[0] for pattern in patterns.values())
        raise ItemsError(f"{name} is {shown(text)}, which must say either {words}")
    return found[0]


def _marked(record: Mapping[str, Any], n_images: int) -> str:
    """The prompt with :data:`IMAGE_MARK` where its pictures stand; without tags the pictures come first."""
    tagged = record.get("QA_prompt_with_image_tag")
    if tagged is None:
        return _text(record, "QA_prompt")
    tags = list(_TAG.finditer(_text(record, "QA_prompt_with_image_tag")))
    if len(tags) != n_images:
        raise ItemsError(f"QA_prompt_with_image_tag has {len(tags)} image tags and image {n_images} pictures; they must agree")
    numbers = [int(tag["number"]) for tag in tags if tag["number"]]
    if numbers and numbers not in ([*range(1, n_images + 1)], [*range(n_images)]):
        raise ItemsError(f"QA_prompt_with_image_tag numbers its images {numbers}; number them in the order of image")
    return _TAG.sub(IMAGE_MARK, tagged)


def _options(record: Mapping[str, Any], kind: str, prompt: str, allow_unknown: bool) -> tuple[Option, ...]:
    meta = record.get("meta_info") or {}
    pattern, info = (meta.get(name) or {} for name in _META)
    letters = sorted({*pattern, *info}) or _listed_letters(prompt)
    if len(letters) < 2 or letters != [chr(ord("A") + k) for k in range(len(letters))]:
        raise ItemsError(f"its options have the letters {letters}; they must be A, B and so on, without a gap")
    texts = _listed_texts(prompt, letters)
    return tuple(
        Option(
            label=letter,
            forms=letter_forms(letter),
            text=texts.get(letter) or (None if info.get(letter) is None else str(info[letter])),
            value=_value(info.get(letter)) if kind == "transition" else None,
            kind=_pattern(pattern.get(letter), kind, allow_unknown),
        )
        for letter in letters
    )


def _listed_letters(prompt: str) -> list[str]:
    return sorted(set(re.findall(r"(?<![\w])\(?([A-H])[.):]\s", prompt)))


def _listed_texts(prompt: str, letters: Sequence[str]) -> dict[str, str]:
    """What stands behind each letter in the prompt's list of options (``A. Image 2; B. Image 3``); empty where there is none."""
    starts = [rf"(?<!\w)\(?{letter}[.):]\s*(?P<{letter}>[^\n]*?)" for letter in letters]
    matches = list(re.finditer(r"[\s;,|/]*".join(starts) + r"(?=[;.]?\s*(?:\n|$)|[;.]\s+[A-Z])", prompt))
    # The last one: the list stands after the question.
    return {letter: matches[-1][letter].strip().rstrip(";,") for letter in letters} if matches else {}


def _value(info: Any) -> float | None:
    found = re.search(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", str(info)) if info is not None else None
    return float(found[0]) if found else None


def _pattern(word: Any, kind: str, allow_unknown: bool) -> str | None:
    if word is None:
        return None
    plain = re.sub(r"[^a-z]+", "_", str(word).lower()).strip("_")
    known = PATTERNS[kind]
    if plain not in known and not allow_unknown:
        raise ItemsError(f"option_meta_pattern holds {shown(word)}, which is not one of: {', '.join(sorted(set(known)))}")
    return known.get(plain)


def _check_truth(truth: str, options: Sequence[Option]) -> None:
    labels = [option.label for option in options]
    if truth not in labels:
        raise ItemsError(f"GT_answer is {shown(truth)}, which is no option's letter; its letters are {', '.join(labels)}")
    correct = [option.label for option in options if option.kind == "correct"]
    if correct and correct != [truth]:
        raise ItemsError(f"GT_answer is {truth} and option_meta_pattern calls {' and '.join(correct)} correct; they must agree")


def _action_groups(subtask: str) -> dict[str, str]:
    match = _ACTION.search(subtask)
    if match is None:
        return {}
    way = {"back": "backward"}.get(match["way"].lower(), match["way"].lower())
    verb = "rotate" if (match["verb"] or "").lower() in ("rotate", "turn") or way in ("up", "down") else "move"
    action = ACTION.get(f"{verb} {way}")
    return {} if action is None else {"action": action.name, "column": action.column}


def _layout_groups(task: str, subtask: str, images: Sequence[Any], n_options: int) -> dict[str, str]:
    said = f"{task} {subtask}"
    match = re.search(r"(?<!\d)([123])[\s_-]*D(?![A-Za-z])", said, re.IGNORECASE)
    map_ = f"{match[1]}D" if match else "1D" if n_options == 2 else None
    if map_ is None:
        return {}
    names = " ".join([said, *(image for image in images if isinstance(image, str))])
    scale = next((scale for scale, words in _SCALES.items() if re.search(words, said, re.IGNORECASE)), None) or next(
        (scale for scale, words in _SCALES.items() if re.search(words, names, re.IGNORECASE)), None
    )
    return {"map": map_} | ({} if scale is None else {"scale": scale, "column": f"{map_} {scale[0].upper()}"})


def _targets(action: Action, magnitude: float) -> dict[str, float]:
    own = {"magnitude": magnitude, "signed_magnitude": action.sign * magnitude, "action_type": float(action.number)}
    return own | {f"magnitude_{action.unit}": magnitude}
