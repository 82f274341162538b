"""Recordings that a probe's controls need and a run may lack: an untrained model, a blank picture."""

from typing import TYPE_CHECKING

from deixis.console import is_watched, note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deixis.activations import Run


def recorded_controls(
    run: "Run", role: str, target: str, task: str | None = None, where: "Mapping[str, str] | None" = None
) -> "dict[str, Run]":
    """The run's real items through the untrained model, and with a blank picture if the run has none; kept beside the run.

    Raises:
        ModelError: The run's model is not at hand.
    """
    import deixis as dx
    from deixis.analyses.probe_data import choose_items

    vlm = dx.load(run.settings["model"])
    chosen = choose_items(run, target, groups="scene", types="figure", condition="real", task=task, where=where)
    ids = set(chosen.ids)
    items = run.items.filter(lambda item: item.id in ids)
    kept = {"sites": run.sites, "roles": (role,), "answers": False, "progress": is_watched()}
    note("recording the untrained model")
    found = {"untrained": dx.record(dx.untrained(vlm), items, f"{run.path}-untrained-{role}", **kept)}
    if not any(item.condition == "blank" for item in run.items):
        note("recording the blank picture")
        found["blank"] = dx.record(vlm, items.with_condition("blank"), f"{run.path}-blank-{role}", **kept)
    return found
