"""SpaceNum in small: what a model answers, where the size of a turn is, and which frame its layouts are in.

python examples/spacenum.py
"""

from pathlib import Path
from tempfile import mkdtemp

import deixis as dx

COLUMNS = ["direction", "column", "accuracy", "low", "high", "chance", "majority", "n"]


def main(out: Path, model: str = "pico-space", n: int = 24) -> None:
    """Ask about ``n`` rooms and ``n`` desks, and look inside."""
    turns = dx.spacenum("transition", n=n, size=160, actions=("rotate up", "rotate down"), directions=("space2num",))
    layouts = dx.spacenum("layout", n=n, size=160, scales=("desk",), maps=("2D",), directions=("space2num",))
    run = dx.record(dx.load(model), turns + layouts, out / "run", roles=("answer", "image:1", "object"))

    print(dx.behaviour(run).scores()[COLUMNS].to_string(index=False))
    turn = {"task": "transition-space2num", "where": {"column": "rotate U/D"}}
    print(dx.layer_sweep(run, "signed_magnitude", role="answer", **turn).best())
    print(dx.frame_sweep(run, roles=("answer", "object"), n_bootstrap=0).best().to_string(index=False))
    print(dx.answer_frame(run))
    print(dx.report([run], out / "report.html"))


if __name__ == "__main__":
    main(Path(mkdtemp(prefix="deixis-spacenum-")))
