"""Run: everything recorded for one model on one set of items, read from disk piece by piece."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from deixis.activations.errors import DamagedShardError, NotARunError, RunError, UnfinishedRunError
from deixis.activations.settings import LINES, LINES_HASH, SHARDS, VIEW, identity, read_header
from deixis.activations.shards import Shard, check_shard, counts_name, dataset_name, from_stored, offsets_of, shard_path
from deixis.benchmarks import Items
from deixis.hooks.choices import roles_of

if TYPE_CHECKING:
    import pandas as pd

    from deixis.activations.attention import AttentionRecord

_AGAIN = "run deixis verify on it, and record again what it names."


def open_run(path: str | Path) -> "Run":
    """Open a directory that :func:`deixis.record` wrote; nothing but its header is read yet.

    Raises:
        NotARunError: ``path`` holds no run.
        SchemaError: The run has another version's layout.
    """
    path = Path(path)
    return Run(path=path, settings=read_header(path))


@dataclass(frozen=True)
class Run:
    """Activations, option logits and answers of one model on one set of items.

    Rows are in item order. Every reading method raises :class:`UnfinishedRunError` if items are missing and
    :class:`DamagedShardError` if what it reads does not match its checksums.
    """

    path: Path
    settings: dict[str, Any]
    """What ``run.json`` holds."""

    @cached_property
    def items(self) -> Items:
        """The items, in the order of every array."""
        from deixis.benchmarks.saved import items_from_jsonl

        try:
            written = (self.path / LINES).read_bytes()
        except OSError as error:
            raise NotARunError(f"{self.path / LINES} can't be read ({error.strerror}); restore it or record again.") from error
        # Before they are read as text, which damaged bytes may not be.
        if hashlib.sha256(written).hexdigest() != self.settings[LINES_HASH]:
            raise NotARunError(
                f"{self.path / LINES} is not the list that was recorded (its hash differs); restore it or record again."
            )
        items = items_from_jsonl(written.decode())
        if len(items) != self.settings["n_items"]:
            raise NotARunError(
                f"{self.path / LINES} holds {len(items)} items where {self.settings['n_items']} were recorded; restore it."
            )
        return items

    @property
    def roles(self) -> tuple[str, ...]:
        """The recorded roles."""
        return tuple(self.settings["roles"])

    @property
    def sites(self) -> tuple[str, ...]:
        """The recorded sites."""
        return tuple(self.settings["layers"])

    def layers(self, site: str = "resid") -> list[int]:
        """The recorded layers of ``site``, in order.

        Raises:
            RunError: The site was not recorded.
        """
        if site not in self.settings["layers"]:
            raise RunError(f"site={site!r} was not recorded; this run holds: {', '.join(self.sites)}.")
        return list(self.settings["layers"][site])

    def activations(self, site: str, layer: int, role: str) -> Float[np.ndarray, "item width"]:
        """One vector per item, float32, read from that layer's bytes only.

        Returns:
            The mean over the role's tokens (or the token itself, where the run kept every token and each item has just one).
            An item without a token of this role has a row of NaN.

        Raises:
            RunError: The site, layer or role was not recorded, or items have several tokens in a run with ``pool=None``.
        """
        name = self._name(site, layer, role)
        if self.settings["pool"] is not None:
            return self._values(name)
        values, offsets = self.tokens(site, layer, role)
        if (np.diff(offsets) > 1).any():
            raise RunError(f"{role!r} has several tokens an item in this run (pool=None); read them with .tokens({site!r}, ...).")
        rows = np.full((len(offsets) - 1, values.shape[1]), np.nan, np.float32)
        rows[np.diff(offsets) == 1] = values
        return rows

    def resid(self, layer: int, role: str = "answer") -> Float[np.ndarray, "item width"]:
        """The residual stream entering block ``layer``: ``activations("resid", layer, role)``."""
        return self.activations("resid", layer, role)

    def tokens(self, site: str, layer: int, role: str) -> tuple[Float[np.ndarray, "token width"], Int[np.ndarray, " boundary"]]:
        """Every token of a role in a run recorded with ``pool=None``.

        Returns:
            float32 values, items end to end, and offsets: item i has the rows ``offsets[i]`` to ``offsets[i + 1]``.

        Raises:
            RunError: The run holds means, or not this site, layer or role.
        """
        name = self._name(site, layer, role)
        if self.settings["pool"] is not None:
            raise RunError(
                f"this run holds means over tokens (pool={self.settings['pool']!r}); record with pool=None to keep them."
            )
        values = self._values(name)
        return values, self._offsets(self.counts(role, site), len(values))

    def counts(self, role: str, site: str | None = None) -> Int[np.ndarray, " item"]:
        """How many tokens of the role each item has; at a site of the vision tower its rows, of which several may make one token.

        Args:
            role: One that was recorded.
            site: None for the first recorded site that has the role.
        """
        return self._joined(counts_name(self._site_of(role) if site is None else site, self._role(role, site)))

    @cached_property
    def options(self) -> "pd.DataFrame":
        """A row per item and option: ``item`` (id), ``option`` (label), ``term``, ``logit`` (float32).

        Raises:
            RunError: The run was recorded with ``options=False``.
        """
        import pandas as pd

        if not self.settings.get("options", True):
            raise RunError("this run was recorded with options=False, so it holds no logits; record it again with options=True.")

        logits = self._joined("options/logit")
        rows = [(item.id, option.label, option.term) for item in self.items for option in item.options]
        if len(rows) != len(logits):
            raise NotARunError(f"{self.path / LINES} and the shards disagree about the options; restore {LINES}.")
        frame = pd.DataFrame(rows, columns=["item", "option", "term"])
        return frame.assign(logit=logits)

    @cached_property
    def answers(self) -> list[str]:
        """What the model wrote, in item order.

        Raises:
            RunError: The run was recorded with ``answers=False``.
        """
        if not self.settings["answers"]:
            raise RunError("this run was recorded with answers=False, so nothing was written; record it again with answers=True.")
        text = self._joined("answers/utf8").tobytes()
        ends = self._offsets(self._joined("answers/length"), len(text))
        try:
            return [text[start:end].decode() for start, end in pairwise(ends)]
        except UnicodeDecodeError as error:
            raise DamagedShardError(f"{self.path} holds an answer that is no text ({error.reason}); {_AGAIN}") from None

    def attention(self, site: str = "attention") -> "AttentionRecord":
        """Statistics of the attention: of the decoder, or of the vision tower (``site="vision_attention"``).

        Raises:
            RunError: The run was recorded without.
        """
        from deixis.activations.attention import attention_record

        return attention_record(self, site)

    def array(self, name: str) -> np.ndarray:
        """One dataset of all shards, end to end, as it is stored; see :mod:`deixis.activations.shards` for the names."""
        return self._joined(name)

    @property
    def info(self) -> dict[str, Any]:
        """All of ``run.json`` and counts over what has been recorded so far.

        ``nan_rows``: items without a token, per role. ``passed_by``: items for which a layer did not run (cross-attention of
        Llama 3.2 Vision, without a picture), per site and layer: they have NaN there, whatever the role. ``whole_strings``:
        items whose options were scored as whole strings. ``shards``: how many are finished, and how many there will be.
        """
        # By what is there: a header may promise more shards than could be listed.
        names = (path.stem for path in (self.path / SHARDS).glob("*.h5"))
        finished = sorted(int(name) for name in names if name.isascii() and name.isdigit() and int(name) < self.n_shards)
        empty = dict.fromkeys(self.roles, 0)
        points = [(site, layer) for site in self.sites for layer in self.layers(site)]
        passed: Counter[str] = Counter()
        whole = 0
        for shard in self._shards(finished):
            passed.update({f"{site} {layer}": shard.passed_by(site, layer) for site, layer in points})
            whole += int(shard.array("options/whole").sum()) if self.settings.get("options", True) else 0
            for role in self.roles:
                empty[role] += int((shard.array(counts_name(self._site_of(role), role)) == 0).sum())
        counts = {
            "nan_rows": empty,
            "passed_by": {point: n for point, n in passed.items() if n},
            "whole_strings": whole,
            "shards": {"finished": len(finished), "total": self.n_shards},
        }
        return {**self.settings, **counts}

    @property
    def n_shards(self) -> int:
        """How many shards the finished run has."""
        return -(-self.settings["n_items"] // self.settings["shard_items"])

    @property
    def finished(self) -> bool:
        """Whether every item has been recorded."""
        return next(self.missing(), None) is None

    def missing(self) -> Iterator[int]:
        """The shards that are not there yet, in order."""
        there = {path.name for path in (self.path / SHARDS).glob("*.h5")}
        # Looked up by name one by one: a header may promise more shards than could be listed.
        return (number for number in range(self.n_shards) if self._shard_path(number).name not in there)

    @property
    def complete(self) -> bool:
        """Whether all is there that :func:`deixis.record` writes."""
        return self.finished and (self.path / LINES).exists() and (self.path / VIEW).exists()

    def verify(self) -> int:
        """Compare every shard, and the list of items, with its checksum.

        Returns:
            The number of shards, all of them sound.

        Raises:
            DamagedShardError: Shards are missing, truncated or changed; the message names each of them.
            NotARunError: The list of items is missing or changed.
        """
        len(self.items)
        faults = [*self.faults().values(), *self._foreign()]
        if faults:
            raise DamagedShardError(" ".join(faults))
        return self.n_shards

    def faults(self) -> dict[int, str]:
        """What is wrong with each shard that is missing, damaged or another run's, by its number.

        Raises:
            NotARunError: The list of items is missing or changed.
        """
        found = {}
        len(self.items)  # no header can promise more shards than it has items on its list
        for number in range(self.n_shards):
            try:
                check_shard(self._shard_path(number), *self.marks(number))
            except DamagedShardError as error:
                found[number] = str(error)
        return found

    def _foreign(self) -> list[str]:
        expected = {self._shard_path(number).name for number in range(self.n_shards)}
        names = sorted(path.name for path in (self.path / SHARDS).glob("*.h5") if path.name not in expected)
        return [f"{self.path / SHARDS / name} is no shard of this run; take it away." for name in names]

    def __repr__(self) -> str:
        """Model, items and path."""
        state = "" if self.finished else ", unfinished"
        return f"Run({self.settings['model']!r}, {self.settings['n_items']} items, {str(self.path)!r}{state})"

    def _name(self, site: str, layer: int, role: str) -> str:
        if layer not in self.layers(site):
            raise RunError(f"layer={layer} was not recorded at {site}; this run holds: {', '.join(map(str, self.layers(site)))}.")
        return dataset_name(site, layer, self._role(role, site))

    def _role(self, role: str, site: str | None = None) -> str:
        if role not in self.roles:
            raise RunError(f"role={role!r} was not recorded; this run holds: {', '.join(self.roles)}.")
        if site is not None and role not in roles_of(site, self.roles):
            here = ", ".join(roles_of(site, self.roles))
            raise RunError(f"role={role!r} is not at {site}, which lies in the vision tower; this run holds there: {here}.")
        return role

    def _site_of(self, role: str) -> str:
        found = next((site for site in self.sites if role in roles_of(site, self.roles)), None)
        if found is None:
            raise RunError(
                f"{self.path} says that role={role!r} was recorded, at sites that can't have it; restore its run.json."
            )
        return found

    def marks(self, number: int) -> tuple[int, str]:
        """How many items a shard holds, and what it says of where it belongs."""
        per_shard = self.settings["shard_items"]
        return min(per_shard, self.settings["n_items"] - number * per_shard), identity(self.settings, number)

    def _values(self, name: str) -> Float[np.ndarray, "row width"]:
        rows = self._over_shards(lambda shard: from_stored(*shard.read(name)))
        if self.settings["pool"] is not None:
            self._check_rows(name, len(rows), self.settings["n_items"])
        return rows

    def _offsets(self, lengths: np.ndarray, total: int) -> Int[np.ndarray, " boundary"]:
        self._check_rows("its counts", len(lengths), self.settings["n_items"])
        offsets = offsets_of(lengths)
        if (lengths < 0).any() or offsets[-1] != total:
            raise DamagedShardError(f"{self.path} holds counts that do not fit what they count; {_AGAIN}")
        return offsets

    def _check_rows(self, what: str, found: int, wanted: int) -> None:
        if found != wanted:
            raise DamagedShardError(f"{self.path} holds {found} rows at {what} where {wanted} items were recorded; {_AGAIN}")

    def _joined(self, name: str) -> np.ndarray:
        return self._over_shards(lambda shard: shard.array(name))

    def _over_shards(self, read: Callable[[Shard], np.ndarray]) -> np.ndarray:
        missing = [self._shard_path(number).name for number in islice(self.missing(), 6)]
        if missing:
            there = sum(1 for _ in (self.path / SHARDS).glob("*.h5"))
            raise UnfinishedRunError(
                f"{self.path} lacks {self.n_shards - there} of {self.n_shards} shards ({', '.join(missing[:5])}"
                f"{', ...' if len(missing) > 5 else ''}); call dx.record with the same arguments again to record them."
            )
        parts = [read(shard) for shard in self._shards(range(self.n_shards))]
        if len({(part.shape[1:], part.dtype) for part in parts}) > 1:
            raise DamagedShardError(f"{self.path} holds shards of different widths; {_AGAIN}")
        return np.concatenate(parts)

    def _shards(self, numbers: "range | list[int]") -> Iterator[Shard]:
        for number in numbers:
            with Shard(self._shard_path(number), *self.marks(number)) as shard:
                yield shard

    def _shard_path(self, number: int) -> Path:
        return shard_path(self.path, number)
