"""The ``deixis`` command: each subcommand is a thin wrapper around a call of the library.

A new command is a function in a module of this folder; the order of the imports below is the order of the help page.
"""

from deixis.cli.app import app as app

# isort: off
from deixis.cli import demo as demo, render as render, runs as runs, decode as decode, scores as scores
from deixis.cli import attention as attention, edits as edits, conclusions as conclusions, models as models
# isort: on


def main() -> None:
    """Run the command line."""
    app()
