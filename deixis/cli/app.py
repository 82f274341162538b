"""The command's root: what stands before a subcommand."""

from typing import Annotated

import typer

app = typer.Typer(
    name="deixis",
    help="Where inside a vision-language model does space live, and does its answer use it?",
    epilog="Start with: deixis demo",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> bool:
    if wanted:
        from deixis import __version__

        typer.echo(__version__)
        raise typer.Exit
    return wanted


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Hold what stands before a subcommand."""
