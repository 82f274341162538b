"""What all measurements share: paired rounds, one thread's CPU time beside wall time, intervals of ratios, peak memory, results.

A ratio of two times taken apart says as much about the machine's other work as about the code. Here both sides run in the same
process, in turns and in random order, on the same number of threads; the ratio is taken within each round and its interval over
rounds. CPU time leaves out what other processes took (it still feels their share of caches and clock rate).
"""

import argparse
import json
import os
import platform
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two ways of doing the same, measured in turns."""

    name: str
    ours: str
    theirs: str
    threads: int
    ours_cpu: tuple[float, ...]
    """Seconds of all the process's threads, one entry a round."""
    theirs_cpu: tuple[float, ...]
    ours_wall: tuple[float, ...]
    theirs_wall: tuple[float, ...]
    scale: float = 1.0
    """What ``theirs`` is multiplied by where it was run on a part of the work only."""
    target: float | None = None
    """Ratio that was asked for."""
    note: str = ""

    def ratio(self, clock: str = "cpu") -> tuple[float, float, float]:
        """How many times faster ours is: geometric mean over rounds, and its 95 % bootstrap interval.

        Args:
            clock: ``cpu`` or ``wall``.
        """
        ours, theirs = np.array(getattr(self, f"ours_{clock}")), np.array(getattr(self, f"theirs_{clock}"))
        logs = np.log(self.scale * theirs / ours)
        draws = np.random.default_rng(0).choice(logs, size=(2000, len(logs))).mean(axis=1)
        return (float(np.exp(logs.mean())), *map(float, np.exp(np.quantile(draws, [0.025, 0.975]))))

    def __str__(self) -> str:
        cpu, low, high = self.ratio()
        wall = self.ratio("wall")[0]
        wanted = "" if self.target is None else f"  (asked: {self.target:g})"
        return f"{self.name}: {cpu:.1f} times by CPU time [{low:.1f}, {high:.1f}], {wall:.1f} by wall time{wanted}"


def compare(
    name: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    labels: tuple[str, str],
    threads: int = 1,
    rounds: int = 5,
    scale: float = 1.0,
    target: float | None = None,
    note: str = "",
) -> Comparison:
    """Run both in turns, in random order, after one round that is thrown away if it is short."""
    rng = np.random.default_rng(0)
    sides = (ours, theirs)
    clocks = np.empty((rounds, 2, 2))
    with threads_set(threads):
        if timed(ours)[1] < 1:
            theirs()
        for number in range(rounds):
            for side in rng.permutation(2):
                clocks[number, side] = timed(sides[side])
    columns = [tuple(map(float, clocks[:, side, clock])) for clock in range(2) for side in range(2)]
    return Comparison(
        name=name,
        ours=labels[0],
        theirs=labels[1],
        threads=threads,
        ours_cpu=columns[0],
        theirs_cpu=columns[1],
        ours_wall=columns[2],
        theirs_wall=columns[3],
        scale=scale,
        target=target,
        note=note,
    )


def compare_all(
    base: Callable[[], Any], others: Mapping[str, Callable[[], Any]], *, threads: int = 1, rounds: int = 5
) -> tuple[list[tuple[float, float]], dict[str, list[tuple[float, float]]]]:
    """Run many things in turns, all of them in each round and in random order, after one round that is thrown away.

    Returns:
        CPU and wall seconds of each round: those of ``base``, and of the others by name.
    """
    rng, works = np.random.default_rng(0), {"": base, **others}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    with threads_set(threads):
        for number in range(rounds + 1):
            for name in rng.permutation(list(works)):
                taken = timed(works[name])
                if number:
                    times[name].append(taken)
    return times.pop(""), times


class threads_set:  # noqa: N801 - reads as a verb where it is used
    """Limit the threads of every linear algebra library that is loaded, torch included."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        self._limits = threadpool_limits(limits=self.threads)
        self._torch = None
        import sys

        if "torch" in sys.modules:
            self._torch = sys.modules["torch"]
            self._before = self._torch.get_num_threads()
            self._torch.set_num_threads(self.threads)

    def __exit__(self, *_: object) -> None:
        self._limits.restore_original_limits()
        if self._torch is not None:
            self._torch.set_num_threads(self._before)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of CPU, of all threads together, and on the wall."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def peak_memory(work: Callable[[], Any]) -> int:
    """Bytes by which the process's resident memory grew at its highest while ``work`` ran."""
    before = _resident()
    highest, stop = before, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not stop.wait(0.002):
            highest = max(highest, _resident())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        work()
    finally:
        stop.set()
        watcher.join()
    return max(highest, _resident()) - before


def _resident() -> int:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    # Elsewhere only the highest value so far is to be had, in bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def matrix_rate(dtype: str, size: int = 1500, threads: int = 1) -> float:
    """Floating-point operations per CPU second that this machine reaches in a product of two matrices, the best of five."""
    one = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    other = one.T.copy()
    with threads_set(threads):
        return 2 * size**3 / min(timed(lambda: one @ other)[0] for _ in range(5))


def machine() -> dict[str, Any]:
    """What a measurement depends on."""
    found = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    found |= {"load": os.getloadavg()[0]} if hasattr(os, "getloadavg") else {}
    return found | {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch", "transformers", "nnsight")}


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def arguments(description: str) -> argparse.Namespace:
    """``--quick`` (smaller, a minute), ``--rounds``, ``--threads``, ``--out``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smaller and fewer rounds: whether it runs, not what it says")
    parser.add_argument("--rounds", type=int, default=None, help="paired rounds of each comparison")
    parser.add_argument("--threads", type=int, default=1, help="threads for both sides")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON and the chart")
    return parser.parse_args()


FASTER = "times faster (CPU time, log scale; red: asked for)"


def save(subject: str, comparisons: Sequence[Comparison], out: Path, axis: str = FASTER, **facts: Any) -> None:
    """Write ``<subject>.json`` and ``<subject>.png``, and print the ratios.

    Args:
        subject: Such as ``probes``.
        comparisons: In the order in which they are drawn.
        out: Folder, made if it is not there.
        axis: What the ratio means.
        facts: What else was measured.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows = [asdict(row) | {"ratio_cpu": row.ratio(), "ratio_wall": row.ratio("wall")} for row in comparisons]
    text = json.dumps({"machine": machine(), "comparisons": rows} | facts, indent=1, default=str)
    (out / f"{subject}.json").write_text(text, encoding="utf-8")
    chart(subject, comparisons, axis).savefig(out / f"{subject}.png", dpi=150, bbox_inches="tight")
    for row in comparisons:
        print(row)
    for name, value in facts.items():
        print(f"{name}: {value}")


def chart(subject: str, comparisons: Sequence[Comparison], axis: str = FASTER) -> Any:
    """Bars of the ratios, with intervals; a tick where a target was set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.5, 1.0 + 0.55 * len(comparisons)))
    for place, row in enumerate(comparisons):
        middle, low, high = row.ratio()
        ax.barh(place, middle, color="#4c78a8", height=0.6)
        ax.plot([low, high], [place, place], color="black", linewidth=1.2)
        ax.annotate(
            f"{middle:.3f}" if middle < 2 else f"{middle:,.3g}",
            (high, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
        if row.target is not None:
            ax.plot([row.target] * 2, [place - 0.4, place + 0.4], color="#d62728", linewidth=2)
    ax.axvline(1, color="grey", linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.margins(x=0.15)
    names = [f"{row.name}\nagainst {row.theirs}" if axis == FASTER else row.name for row in comparisons]
    ax.set_yticks(range(len(comparisons)), names, fontsize=8)
    for ticks in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        ticks("{x:g}")
    ax.invert_yaxis()
    ax.set_xlabel(axis)
    ax.set_title(subject)
    ax.spines[["top", "right"]].set_visible(False)
    plt.close(figure)
    return figure
