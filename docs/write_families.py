"""Writes the table of docs/families.md from the records: python docs/write_families.py."""

from pathlib import Path

from deixis.models.table import family_markdown

PAGE = Path(__file__).with_name("families.md")
START, END = "<!-- families: written by docs/write_families.py from deixis.models.table -->", "<!-- /families -->"


def page(text: str) -> str:
    """The page with its table as the records give it."""
    before, rest = text.split(START)
    return f"{before}{START}\n{family_markdown()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
