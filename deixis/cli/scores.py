"""What the model answered."""

from deixis.cli.app import app
from deixis.cli.options import Reference, RunFolder, Written
from deixis.cli.output import answered, filled
from deixis.console import Outcome, command, records, table


@command(app, "score")
def score(run: RunFolder, reference: Reference = None, out: Written = None) -> Outcome:
    """Compare the answers with a reference and with the truth."""
    import deixis as dx

    found = dx.behaviour(dx.open_run(run), reference=reference)
    scores = found.scores()
    headings = {"language": "language", "region": "region", "js_distance": "JS distance", "low": "low", "high": "high"}
    headings |= {"js_uniform": "JS uniform", "recognised": "recognised", "accuracy": "accuracy", "n": "n"}
    data = {"scores": records(scores), "distributions": records(found.to_frame())}
    return answered(found, out, (table(scores, filled(scores, headings)),), data)
