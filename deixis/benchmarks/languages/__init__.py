"""What each language calls the terms, the distances, the colours and the shapes: one TOML file a language.

A new language is a new file and nothing else: in this folder, or a user's own, named in ``$DEIXIS_LANGUAGES`` or by its path.
"""

import os
from functools import cache
from importlib import resources
from pathlib import Path

from deixis.benchmarks.languages.table import TERMS as TERMS
from deixis.benchmarks.languages.table import Language as Language
from deixis.benchmarks.languages.table import LanguageError as LanguageError
from deixis.benchmarks.languages.table import Question as Question
from deixis.benchmarks.languages.table import read_table

_added: dict[str, tuple[Language, str]] = {}
"""Tables of the user's own that this process has read, with their text."""


@cache
def _built_in() -> dict[str, Language]:
    folder = resources.files(__name__)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return {f.name[:-5]: read_table(f.name[:-5], f.read_text("utf-8"), f.name) for f in files}


def languages() -> dict[str, Language]:
    """Every language by its code: the built-in ones in alphabetical order, then those that were added."""
    return _built_in() | {code: table for code, (table, _) in _added.items()}


def add_language(path: str | Path) -> Language:
    """Read a table of your own; its code is the file's name without ``.toml``, for the rest of the program.

    Other programs that read runs in this language find the table where ``$DEIXIS_LANGUAGES`` names its folder.

    Raises:
        LanguageError: The file is no table, a word is missing, or a form is shared; the message names file and line. Or its code
            is taken.
    """
    path = Path(path)
    code = path.stem
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LanguageError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise LanguageError(f"{path} can't be read ({error.strerror}); name a .toml file.") from error
    if code in _built_in():
        raise LanguageError(f"{path}: the code {code!r} is that of a built-in table; name the file {code}-mine.toml, say.")
    if code in _added and _added[code][1] != text:
        raise LanguageError(f"{path}: another table with the code {code!r} was read before; give the file another name.")
    if code not in _added:
        _added[code] = (read_table(code, text, str(path)), text)
    return _added[code][0]


def language(code: str | Path) -> Language:
    """The language with this code, or of the table at this path.

    Raises:
        ValueError: No table has this code.
        LanguageError: The user's own table can't be used.
    """
    if isinstance(code, Path) or code.endswith(".toml"):
        return add_language(code)
    if code in languages():
        return languages()[code]
    for folder in filter(None, os.environ.get("DEIXIS_LANGUAGES", "").split(os.pathsep)):
        # The code may come from a file of items: it names a file, never a way to one.
        if Path(code).name == code and (Path(folder) / f"{code}.toml").is_file():
            return add_language(Path(folder) / f"{code}.toml")
    listed = ", ".join(map(repr, languages()))
    raise ValueError(
        f"language={code!r} is not one of: {listed}; use one of these, read a table of your own with dx.add_language(path), "
        "or name its folder in $DEIXIS_LANGUAGES."
    )
