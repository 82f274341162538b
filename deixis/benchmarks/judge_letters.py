r"""Reading which letter a written answer chooses.

An answer is read as a letter where it leaves no doubt:

- nothing but the letter, bare or dressed: ``B``, ``(B)``, ``B.``, ``**B**``, ``\boxed{B}``, ``<answer>B</answer>``;
- the letter with its option's own text, or that text alone: ``B. Image 3``, ``Image 3``;
- a statement: ``Answer: B``, ``The correct option is (B)``, ``I choose B``, ``B is correct``. What comes before it may name other
  letters, what comes after it may not, and all statements must agree;
- without a statement one letter at the beginning, at the end or behind a word such as *option*, and no other letter anywhere.

Reasoning between marks of thought is cut off first; an answer that never left its thoughts says nothing. Two letters, a letter
that is no option, a letter with another option's text, and a denial ("not B") are unreadable. The English article is no letter.
"""

import re
import unicodedata
from collections.abc import Sequence
from string import ascii_uppercase

from deixis.benchmarks.items import Item, Option

_THOUGHT = r"(?:think|thinking|thought|reasoning|analysis|seed:think)"
_OPENS = re.compile(rf"<{_THOUGHT}>|◁think▷|\[THINK\]", re.IGNORECASE)
_CLOSES = re.compile(rf"</{_THOUGHT}>|◁/think▷|\[/THINK\]", re.IGNORECASE)
_MARKED = re.compile(r"<answer>(.*?)(?:</answer>|$)|\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}", re.IGNORECASE | re.DOTALL)
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\{([^{}]*)\}")
_DRESS = re.compile(r"[*_`$#>\"“”„«»]|\\[()\[\]]")
_MINUS = re.compile("[\N{MINUS SIGN}\N{EN DASH}\N{EM DASH}]")

_NOT_AFTER, _NOT_BEFORE = r"(?<![A-Za-zÀ-ÿ0-9'’])", r"(?![A-Za-zÀ-ÿ0-9'’])"
_LETTERS = "A-H"
"""What is taken for an option's letter at all; I is a pronoun, X to Z are axes."""
# The English article: a capital A before a word in small letters, unless that word can follow an option's name.
_AFTER_NAME = (
    "is|or|and|because|since|as|with|which|where|but|if|for|not|in|due|matches|shows|fits|best|would|has|seems|looks|are"
)
_NO_ARTICLE = rf"(?!(?<=A)\s+(?!(?:{_AFTER_NAME})\b)[a-z])"
_LETTER = rf"[(\[{{]?\s*(?P<letter>{_NOT_AFTER}[{_LETTERS}]{_NOT_BEFORE})\s*[)\]}}]?"
_SMALL = r"[(\[](?P<small>[a-h])[)\]]|(?P<last>(?<!\w)[a-h])(?=\s*[.!]?\s*(?:\n|$))"
_NAMES = r"(?:option|choice|letter|candidate|answer)"
_LEADS = (
    r"\b(?:ans|answer|choice|option|selection|response|conclusion)\b\s*"
    # Counted, not open-ended: a collapsed model writes thousands of colons.
    r"(?:is|are|was|would\s+be|should\s+be|must\s+be|:|=|-{1,2}>?|→)(?:\s*[:=]){0,2}"
    rf"(?:\s*(?:therefore|thus|clearly|likely|most\s+likely|probably|:|,)){{0,4}}\s*(?:the\s+)?(?:{_NAMES}\b)?\s*[:=]?\s*"
)
_CHOOSES = (
    r"\bI(?:\s+would|\s+will|['’]d|['’]ll)?\s+(?:choose|pick|select|go\s+with|answer)\s+"
    rf"(?:the\s+)?(?:{_NAMES}\b)?\s*:?\s*"
)
_OTHER_TONGUES = r"(?:答案|选择|選擇|选项|回答|正解|答え|정답|답)\s*(?:应该是|是|为|為|は|은|는)?\s*:?\s*"
_IS_RIGHT = (
    r"\s*(?:is|must\s+be|seems|looks)\s+(?:the\s+)?"
    r"(?:correct|right|best|most\s+(?:accurate|consistent|likely|plausible))\b"
)


def _any_case(pattern: str) -> str:
    return f"(?i:{pattern})"


_STATED = (
    re.compile(_any_case(_LEADS) + rf"(?:{_LETTER}{_NO_ARTICLE}|{_SMALL})"),
    re.compile(_any_case(_CHOOSES) + _LETTER + _NO_ARTICLE),
    re.compile(_OTHER_TONGUES + _LETTER),
    re.compile(_LETTER + _any_case(_IS_RIGHT)),
)
_WHOLE = re.compile(r"[(\[{<]?\s*([A-Za-z])\s*[)\]}>]?\s*[.:,;!。]?")
_WITH_TEXT = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\]]?(?:\s*[.:,)\-]+\s*|\s+)(.+)", re.DOTALL)
_MENTION = re.compile(rf"{_NOT_AFTER}([{_LETTERS}]){_NOT_BEFORE}{_NO_ARTICLE}")
_BEGINS = re.compile(rf"[(\[]?[{_LETTERS}]{_NOT_BEFORE}")
_ENDS = re.compile(rf"{_NOT_AFTER}[{_LETTERS}][)\]]?\s*[.!。]?$")
_NAMED = re.compile(_any_case(rf"\b{_NAMES}\b") + rf"\s*[(\[]?[{_LETTERS}]{_NOT_BEFORE}")
_DENIED = re.compile(
    r"\b(?:not|no|never|neither|nor|none|except|cannot|wrong|incorrect|eliminate|exclude|unsure|rule[sd]?\s+out)\b|n['’]t\b",
    re.IGNORECASE,
)


def is_lettered(item: Item) -> bool:
    """Whether the item is a multiple choice: its labels are A, B, ... in order, and one of them is right."""
    labels = "".join(option.label for option in item.options)
    return item.truth is not None and 2 <= len(item.options) <= 8 and ascii_uppercase.startswith(labels)


def split_reasoning(answer: str) -> tuple[str, str | None]:
    """An answer as its reasoning (empty where there is none) and what follows it (None where the reasoning has no end)."""
    closed = list(_CLOSES.finditer(answer))
    before, after = (answer[: closed[-1].start()], answer[closed[-1].end() :]) if closed else ("", answer)
    if opened := _OPENS.search(after):
        return before + after[opened.end() :], None
    return _OPENS.sub("", before), after


def read_letter(answer: str, options: Sequence[Option]) -> str | None:
    """Label of the option that ``answer`` chooses; None where it cannot be read.

    Args:
        answer: As the model wrote it, reasoning included.
        options: The item's, labelled A, B, ...
    """
    _, said = split_reasoning(answer)
    if said is None:
        return None
    text = _undressed(said)
    found = _by_itself(text, options) or _stated(text)
    if found is None and not any(pattern.search(text) for pattern in _STATED):
        found = _only_mention(text)
    return found if found in {option.label for option in options} and not _contradicted(text, found, options) else None


def _undressed(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    if marked := [inside or boxed for inside, boxed in _MARKED.findall(text)]:
        text = "\n".join(marked)
    return _MINUS.sub("-", _DRESS.sub("", _TEXT_COMMAND.sub(r"\1", text))).strip()


def _by_itself(text: str, options: Sequence[Option]) -> str | None:
    """The letter where there is nothing else, or nothing but an option's text."""
    if whole := _WHOLE.fullmatch(text):
        return whole[1].upper()
    bare = _squeezed(text)
    spelled = [option.label for option in options if option.text is not None and _squeezed(option.text) == bare]
    if len(spelled) == 1:
        return spelled[0]
    if with_text := _WITH_TEXT.fullmatch(text):
        own = next((option for option in options if option.label == with_text[1].upper()), None)
        if own is not None and own.text is not None and _squeezed(own.text) == _squeezed(with_text[2]):
            return own.label
    return None


def _stated(text: str) -> str | None:
    """The letter that every statement names and that nothing behind the last of them contradicts."""
    found = sorted((match.start(), _letter_of(match)) for pattern in _STATED for match in pattern.finditer(text))
    letters = {letter for _, letter in found}
    if len(letters) != 1:
        return None
    letter = letters.pop()
    later = {match[1] for match in _MENTION.finditer(text, found[-1][0])}
    return letter if later <= {letter} else None


def _letter_of(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return str(groups.get("letter") or groups.get("small") or groups.get("last")).upper()


def _only_mention(text: str) -> str | None:
    letters = {match[1] for match in _MENTION.finditer(text)}
    if len(letters) != 1 or _DENIED.search(text):
        return None
    (letter,) = letters
    begins = _MENTION.match(text.lstrip("([")) and _BEGINS.match(text)
    return letter if begins or _ENDS.search(text) or _NAMED.search(text) else None


def _contradicted(text: str, letter: str, options: Sequence[Option]) -> bool:
    """Whether what stands behind the letter is another option's text."""
    behind = _WITH_TEXT.fullmatch(text)
    if behind is None or behind[1].upper() != letter:
        return False
    rest = _squeezed(behind[2])
    return any(o.text is not None and o.label != letter and _squeezed(o.text) == rest for o in options)


def _squeezed(text: str) -> str:
    """An option's text as it is compared: no blanks, no case, no full stop, one kind of minus."""
    text = _MINUS.sub("-", unicodedata.normalize("NFKC", text)).casefold()
    return re.sub(r"\s+", "", text).rstrip(".,;!")
