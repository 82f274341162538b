"""The models that deixis knows."""

from deixis.cli.app import app
from deixis.console import Outcome, command


@command(app, "families")
def families() -> Outcome:
    """List the model families that deixis has a record of, and the bundled models."""
    from deixis.models import BUNDLED, FAMILIES

    data = {"families": list(FAMILIES), "bundled": list(BUNDLED)}
    return Outcome(data, (*data["families"], f"bundled: {', '.join(data['bundled']) or 'none'}"))
