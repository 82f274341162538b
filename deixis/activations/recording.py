"""record: run items through a watched model, and write down what was seen, shard by shard."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deixis.activations.batching import AUTO_BATCH
from deixis.activations.disk import SUFFIX, told_of_the_disk, write_text
from deixis.activations.errors import DamagedShardError, NotARunError, RunError, SettingsError
from deixis.activations.lock import LOCK
from deixis.activations.ranks import Crew, Rank, rank_in, rank_locks, recording_alone, take_away_stale
from deixis.activations.recorder import Recorder
from deixis.activations.run import Run, open_run
from deixis.activations.settings import (
    HEADER,
    LINES,
    LINES_HASH,
    SHARDS,
    VIEW,
    check_same,
    describe_model,
    library_versions,
    read_header,
    write_header,
)
from deixis.activations.shards import check_shard, shard_path
from deixis.activations.view import write_view
from deixis.benchmarks import Items
from deixis.benchmarks.saved import items_to_jsonl
from deixis.hooks import AttentionPlan, AttentionWatch, Watch
from deixis.models import VLM

_LOG = logging.getLogger("deixis")
# Items in a shard: what a kill may cost, against the number of files.
SHARD_ITEMS = {"mean": 64, None: 16}


def record(
    vlm: VLM,
    items: Items,
    path: str | Path,
    sites: Sequence[str] = ("resid",),
    layers: Sequence[int] | Mapping[str, Sequence[int] | str] | str = "all",
    roles: Sequence[str] = ("answer", "object", "image"),
    pool: str | None = "mean",
    attention: bool | Sequence[str] | AttentionPlan = False,
    answers: bool = True,
    batch_size: int | str = "auto",
    max_new_tokens: int = 16,
    resume: bool = True,
    progress: bool = True,
    ranks: tuple[int, int] | str = "auto",
    options: bool = True,
) -> Run:
    """Run every item through the model and keep activations, option logits and answers in a directory.

    One forward pass per batch serves the activations and the option logits, and the written answer continues from it. Killed at
    any instant, the same call goes on where it stopped and ends with what an undisturbed run holds; a finished run of the same
    settings is returned at once.

    Args:
        vlm: The model; see :func:`deixis.load`.
        items: What to ask it.
        path: The run's directory; made if it is not there.
        sites: Places in the model, out of :data:`deixis.hooks.SITES`: ``resid`` (the residual stream entering each block),
            ``attn_out``, ``mlp_out``, ``head``, ``vision``, ``merger_in``, ``merger_out``.
        layers: Layer numbers (0 to L at ``resid``; L is the input of the final norm), or ``"all"``; a mapping gives each site its
            own. A layer that a batch passes by (Mllama's cross-attention without a picture) is NaN at every site but ``resid``.
        roles: Groups of token positions; see :class:`deixis.Watch`.
        pool: ``"mean"`` keeps one float32 mean per item and role (roles of a single token keep the model's dtype bit for bit);
            None keeps every token in the model's dtype.
        attention: Whether statistics of the attention are kept too: True for the answer position's, a list of roles whose
            queries look (``("answer", "options")``), or an :class:`deixis.AttentionPlan`. The model computes as without.
        answers: Whether the model also writes its answer, greedily.
        batch_size: Items per forward pass; ``"auto"`` starts with 16, doubles from shard to shard as far as
            :class:`deixis.activations.batching.MemoryRule` allows, and halves whenever the device's memory runs out. Within a
            shard items of like length run together; the run has them in their own order.
        max_new_tokens: The longest answer, in tokens.
        resume: False refuses a directory that holds a run already.
        progress: Show a progress bar on stderr if that is a terminal; of several ranks the first one does.
        ranks: Which of several processes this is that record ``path`` together, each its own shards: ``"auto"`` asks the
            environment (``RANK`` and ``WORLD_SIZE``, as torchrun sets them; see :func:`deixis.activations.ranks.rank_in`),
            ``(0, 1)`` is one alone, whatever that says. With a fixed ``batch_size`` the run is the same, byte for byte.
        options: Whether the logits of the items' options are kept. Without options, answers and attention a pass ends behind the
            last layer that is watched, and costs no more than the layers up to there.

    Returns:
        The finished run: of several ranks each waits for the others.

    Raises:
        ValueError: An argument is outside what it allows. Nothing is written then.
        SettingsError: ``path`` holds a run of other settings; the message shows the differences.
        NotARunError: ``path`` holds something else.
        DiskError: ``path`` can't be written to: the disk is full, or read-only. What is finished stays.
        LockedRunError: Another process is recording into ``path``; the message names it.
        UnfinishedRunError: Other ranks have ended without their shards; the message names these.
        NonFiniteError: The model held NaN or infinite activations.
        AttentionError: The model's attention can't be read; the message says what to do.
    """
    watch = Watch(vlm, sites=sites, layers=layers, roles=roles, pool=pool)
    _check_arguments(vlm, items, batch_size, max_new_tokens)
    rank = rank_in(os.environ) if ranks == "auto" else _given_rank(ranks)
    if rank.of > 1 and not resume:
        raise ValueError(
            "resume=False can't be asked of several ranks, each of which goes on with what another began; leave it out."
        )
    plan = AttentionPlan.of(attention)
    attending = None if plan is None else AttentionWatch(vlm, plan)
    settings = {
        **describe_model(vlm),
        "items": items.fingerprint,
        "n_items": len(items),
        "sites": list(watch.sites),
        "layers": {site: watch.layers(site) for site in watch.sites},
        "roles": list(watch.roles),
        "pool": pool,
        "attention": False if attending is None else attending.settings(),
        "answers": answers,
        "batch_size": batch_size,
        "max_new_tokens": max_new_tokens,
        "shard_items": shard_items(pool, batch_size),
        "libraries": library_versions(),
    }
    # Named only where it is not as ever, so that runs from before there was a choice are the same runs.
    settings |= {} if options else {"options": False}
    path = Path(path)
    text = items_to_jsonl(items)
    settings |= {LINES_HASH: hashlib.sha256(text.encode()).hexdigest()}
    started = _started(path, settings, resume)
    # A finished run may lie where nothing can be written.
    if started is not None and started.complete and not (path / LOCK).exists() and not rank_locks(path):
        return started
    with told_of_the_disk(path):
        if rank.of > 1:
            return _record_by_crew(
                rank, path, text, settings, lambda run: Recorder(vlm, items, watch, run, attending, stride=rank.of), progress
            )
        with recording_alone(path):
            run = _prepared(path, text, settings, resume)
            _record_shards(Recorder(vlm, items, watch, run, attending), run, _missing_shards(run), progress)
            _end(run)
    return run


def repair(vlm: VLM, run: Run, progress: bool = True) -> Run:
    """Record again what is missing or damaged in a run, and nothing else.

    Args:
        vlm: The model that made the run; its weights and settings must be the run's.
        run: Of :func:`deixis.open_run`; its list of items must be whole, and their pictures must be there.
        progress: Show a progress bar on stderr if that is a terminal.

    Returns:
        The run, with what it was recorded to hold.

    Raises:
        SettingsError: The model is not the one that made the run. Nothing is touched then.
        NotARunError: The list of items is damaged: restore it, or record the run again elsewhere.
    """
    items, there = run.items, run.settings
    watch = Watch(vlm, sites=there["sites"], layers=there["layers"], roles=there["roles"], pool=there["pool"])
    _check_arguments(vlm, items, there["batch_size"], there["max_new_tokens"])
    attending = AttentionWatch(vlm, AttentionPlan.from_settings(there["attention"])) if there["attention"] else None
    here = there | describe_model(vlm) | {"items": items.fingerprint, "libraries": library_versions()}
    check_same(run.path, there, here, finished=False)
    with told_of_the_disk(run.path), recording_alone(run.path):
        damaged = list(run.faults())
        for number in damaged:
            shard_path(run.path, number).unlink(missing_ok=True)
        _record_shards(Recorder(vlm, items, watch, run, attending), run, damaged, progress)
        _end(run)
    return run


def _record_shards(
    recorder: Recorder, run: Run, numbers: Sequence[int], progress: bool, after: Callable[[], None] = lambda: None
) -> None:
    with recorder.at_work(), _explained_interrupt(run), _progress_bar(run, numbers, shown=progress) as advance:
        for number in numbers:
            recorder.shard(number, advance)
            after()


def _end(run: Run, mark: str = "") -> None:
    """What is done once all shards are there."""
    write_view(run.path, run.n_shards, run.items, mark)
    take_away_stale(run.path)


def _given_rank(ranks: tuple[int, int] | str) -> Rank:
    try:
        number, of = (int(part) for part in ranks)
    except (TypeError, ValueError):
        raise ValueError(
            f"ranks={ranks!r} is neither 'auto' nor this process's rank and how many there are, such as (0, 2)."
        ) from None
    return Rank(number, of)


def _record_by_crew(
    rank: Rank, path: Path, text: str, settings: dict[str, Any], recorder_of: Callable[[Run], Recorder], progress: bool
) -> Run:
    """This rank's part of a run, and the end of the whole once all are done."""
    with Crew(path, rank).at_work() as crew:
        begun = rank.number != 0
        run = crew.wait_for_header(lambda: _begun(path, settings)) if begun else _prepared(path, text, settings, resume=True)
        todo = _missing_shards(run, [number for number in range(run.n_shards) if rank.owns(number)])
        for number in todo:  # a damaged one goes first, so that no rank takes the run for whole
            shard_path(path, number).unlink(missing_ok=True)
        _record_shards(recorder_of(run), run, todo, progress and rank.number == 0, after=crew.look)
        crew.wait_for_others(lambda: list(run.missing()), (path / VIEW).exists, lambda: _end(run, rank.part))
    return run


def _begun(path: Path, settings: dict[str, Any]) -> Run | None:
    """The run that rank 0 has begun; None as long as it has not.

    Raises:
        SettingsError: There is one with shards already, and of other settings.
    """
    if not (path / HEADER).exists() or not (path / SHARDS).is_dir() or not (path / LINES).exists():
        return None
    run = open_run(path)
    try:
        check_same(path, run.settings, settings, finished=run.finished)
    except SettingsError:  # what an earlier attempt left, until rank 0 writes its own
        if any((path / SHARDS).glob("*.h5")):
            raise
        return None
    return run


def _check_arguments(vlm: VLM, items: Items, batch_size: int | str, max_new_tokens: int) -> None:
    if not isinstance(items, Items):
        raise ValueError(f"items is a {type(items).__name__}; pass Items, such as dx.Items(your_list).")
    if not len(items):
        raise ValueError("there are no items to record; pass at least one.")
    bare = next((item.id for item in items if not item.options), None)
    if bare is not None:
        raise ValueError(f"item {bare!r} has no options, which a run keeps the logits of; give it at least one.")
    if batch_size != "auto" and (type(batch_size) is not int or batch_size < 1):
        raise ValueError(f"batch_size={batch_size!r} is neither 'auto' nor a whole number from 1.")
    if type(max_new_tokens) is not int or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens={max_new_tokens} must be a whole number from 1; use answers=False to write no answers.")
    if vlm.model.training:
        raise ValueError("the model is in training mode, where dropout makes every pass another; call vlm.model.eval() first.")


def shard_items(pool: str | None, batch_size: int | str) -> int:
    """A whole number of batches, so that no batch crosses a shard."""
    batch = AUTO_BATCH if batch_size == "auto" else int(batch_size)
    return batch * -(-SHARD_ITEMS[pool] // batch)


def _started(path: Path, settings: dict[str, Any], resume: bool) -> Run | None:
    """The run that ``path`` holds shards of, if there is one; it is of these settings."""
    # A run that holds no shard yet, perhaps because its first batch was refused, has nothing to lose.
    if path.is_dir() and (path / HEADER).exists() and any((path / SHARDS).glob("*.h5")):
        if not resume:
            raise RunError(f"{path} holds a run already and resume=False; name another path, or let it resume.")
        there = read_header(path)
        run = Run(path=path, settings=there)
        check_same(path, there, settings, finished=run.finished)
        return run
    if path.exists() and not path.is_dir():
        raise NotARunError(f"{path} is a file; name a directory for the run.")
    # A process killed before it wrote the header leaves the items, which are written first.
    ours = {LINES, LINES + SUFFIX, HEADER, HEADER + SUFFIX, SHARDS, LOCK, *(lock.name for lock in rank_locks(path))}
    if path.exists() and (others := sorted(entry.name for entry in path.iterdir() if entry.name not in ours)):
        raise NotARunError(f"{path} is no run but holds {', '.join(others[:3])}; name an empty or new directory.")
    return None


def _prepared(path: Path, text: str, settings: dict[str, Any], resume: bool) -> Run:
    """The run at ``path``, begun if it is not there; asked again now that it is ours alone."""
    run = _started(path, settings, resume)
    if run is None:
        (path / SHARDS).mkdir(exist_ok=True)
        write_text(path / LINES, text)
        write_text(path / HEADER, write_header(settings))
        return open_run(path)
    if not (path / LINES).exists() and run.settings[LINES_HASH] == settings[LINES_HASH]:
        write_text(path / LINES, text)
    return run


def _missing_shards(run: Run, among: Sequence[int] | None = None) -> list[int]:
    """The shards that have to be recorded: those not there and, in an unfinished run, those that are damaged.

    A rank looks at its own only, whatever has become of the others' meanwhile.
    """
    if among is None and run.finished:
        return []
    missing = []
    for number in range(run.n_shards) if among is None else among:
        path = shard_path(run.path, number)
        try:
            if path.exists():
                check_shard(path, *run.marks(number))
                continue
        except DamagedShardError as error:
            _LOG.warning("%s is recorded again: %s", path.name, error)
        missing.append(number)
    return missing


@contextmanager
def _explained_interrupt(run: Run) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(f"What is finished stays in {run.path}; the same call again goes on from there.")
        raise


@contextmanager
def _progress_bar(run: Run, missing: Sequence[int], *, shown: bool) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bar:
        total, per_shard = run.settings["n_items"], run.settings["shard_items"]
        left = sum(min(total, (number + 1) * per_shard) - number * per_shard for number in missing)
        task = bar.add_task(f"recording {run.settings['model']}", total=total, completed=total - left)
        yield lambda n: bar.advance(task, n)
