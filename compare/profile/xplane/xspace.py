"""A profile in memory: planes (devices, hosts) of lines (threads, queues) of events, as columns.

String columns are categoricals; no event becomes a Python object.  The platform readers turn it into `device_events`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from compare.profile.xplane.columnar_protobuf import Fields, Messages, fields
from compare.profile.xplane.device_events import words_by_code
from compare.profile.xplane.xstats import CodedWords, Stats
from compare.timeline.arrays import Floats, Ints

Value = int | float | str | bytes

_METADATA, _OFFSET, _DURATION, _STATS, _OCCURRENCES = 1, 2, 3, 4, 5
"""Numbers of XEvent's fields."""
_MONTH_NS = 30 * 86_400 * 10**9
_YEAR_NS = 365 * 86_400 * 10**9
_DEVICE = "/device:TPU:"


@dataclass(frozen=True, slots=True)
class _Columns:
    """The events of one line."""

    metadata: Ints
    offset_ps: Ints
    duration_ps: Ints
    stats: Stats


class Metadata:
    """The event metadata of a plane: one row for each kind of event."""

    def __init__(self, ids: Sequence[int], names: list[str], display_names: list[str], stats: Stats):
        self._ids = np.array(ids, np.int64)
        self._order = np.argsort(self._ids, kind="stable")
        self.names = names
        self.display_names = display_names
        self.stats = stats
        self._words: dict[str, CodedWords] = {}

    @classmethod
    def empty(cls) -> "Metadata":
        """Of a plane without any."""
        return cls([], [], [], Stats(Messages.of([]), np.empty(0, np.int64), count=0, names={}))

    def rows(self, ids: Ints) -> Ints:
        """The row of each id; -1 for an unknown id."""
        if not self._ids.size:
            return np.full(ids.size, -1, np.int64)
        index = np.minimum(np.searchsorted(self._ids[self._order], ids), self._ids.size - 1)
        row = self._order[index]
        return np.where(self._ids[row] == ids, row, -1)

    def words(self, column: str, source: "list[str] | None" = None) -> CodedWords:
        """A string column, or a statistic, with a code for each row."""
        if column not in self._words:
            if source is None:
                self._words[column] = self.stats.words(column)
            else:
                codes, words = pd.factorize(np.array(source, dtype=object))
                self._words[column] = CodedWords(codes.astype(np.int64), list(words))
        return self._words[column]


class Line(Protocol):
    """One line: its events.  Every column has one entry per event."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def timestamp_ns(self) -> int: ...

    def __len__(self) -> int: ...

    @property
    def names(self) -> pd.Categorical: ...

    @property
    def display_names(self) -> pd.Categorical:
        """The short name; without one, the name."""

    def start_ns(self, zero_ns: int) -> Floats:
        """Start times from `zero_ns` (see `Space.zero_ns`): nanoseconds since 1970 exceed a float's precision."""

    @property
    def duration_ns(self) -> Floats: ...

    def numbers(self, stat: str, *, missing: int = -1) -> Ints:
        """An integer statistic."""

    def floats(self, stat: str) -> Floats:
        """A numeric statistic; NaN where there is none."""

    def words(self, stat: str) -> pd.Categorical:
        """A string statistic; "" where there is none."""


class ProtobufLine:
    """A line of an `xplane.pb`, read on first use."""

    def __init__(self, message: Any, metadata: Metadata, stat_names: Mapping[int, str]):
        self.id: int = message.id
        self.name: str = (message.name or message.display_name).decode(errors="replace")
        self.timestamp_ns: int = message.timestamp_ns
        self._message = message
        self._metadata = metadata
        self._stat_names = stat_names

    def __len__(self) -> int:
        return len(self._message.events)

    @cached_property
    def _columns(self) -> _Columns:
        return self._read(Messages.of(list(self._message.events)))

    def _read(self, events: Messages) -> _Columns:
        columns = {number: np.zeros(len(events), np.int64) for number in (_METADATA, _OFFSET, _DURATION)}
        stats: list[Fields] = []
        for read in fields(events):
            for number in np.unique(read.number).tolist():
                selected = read.only(read.number == number)
                if number in columns:
                    columns[number][selected.owner] = selected.value.view(np.int64)
                elif number == _STATS:
                    stats.append(selected)
                elif number == _OCCURRENCES:  # a sum over many executions, which has no time
                    timed = np.ones(len(events), np.bool_)
                    timed[selected.owner] = False
                    return self._read(events.only(timed))
        owner = np.concatenate([np.empty(0, np.int64), *(part.owner for part in stats)])
        starts = np.concatenate([np.empty(0, np.int64), *(part.offset for part in stats)])
        sizes = np.concatenate([np.empty(0, np.int64), *(part.value.view(np.int64) for part in stats)])
        stats_of_events = Stats(
            Messages(events.data, starts, starts + sizes), owner, count=len(events), names=self._stat_names
        )
        return _Columns(columns[_METADATA], columns[_OFFSET], columns[_DURATION], stats_of_events)

    @cached_property
    def rows(self) -> Ints:
        """The row of each event's metadata; -1 where the file has none."""
        return self._metadata.rows(self._columns.metadata)

    @property
    def names(self) -> pd.Categorical:
        return self._category(self._metadata.words("\0name", self._metadata.names))

    @property
    def display_names(self) -> pd.Categorical:
        """The short name; without one, the name."""
        return self._category(self._metadata.words("\0display", self._metadata.display_names))

    def start_ns(self, zero_ns: int) -> Floats:
        """Start times from `zero_ns` (see `Space.zero_ns`): nanoseconds since 1970 exceed a float's precision."""
        return float(self.timestamp_ns - zero_ns) + self._columns.offset_ps / 1e3

    @property
    def duration_ns(self) -> Floats:
        return self._columns.duration_ps / 1e3

    def numbers(self, stat: str, *, missing: int = -1) -> Ints:
        """An integer statistic: the event's own, else its metadata's."""
        values = self._columns.stats.numbers(stat, missing=missing)
        of_rows = np.append(self._metadata.stats.numbers(stat, missing=missing), missing)
        return np.where(values == missing, of_rows[self.rows], values)

    def floats(self, stat: str) -> Floats:
        """A numeric statistic: the event's own, else its metadata's; NaN where neither has it."""
        if stat not in self._stat_names.values():
            return np.full(self._columns.metadata.size, np.nan)
        values = self._columns.stats.floats(stat)
        of_rows = np.append(self._metadata.stats.floats(stat), np.nan)
        return np.where(np.isnan(values), of_rows[self.rows], values)

    def words(self, stat: str) -> pd.Categorical:
        """A string statistic: the event's own, else its metadata's; "" where there is none."""
        if stat not in self._stat_names.values():
            return words_by_code(np.zeros(self._columns.metadata.size, np.int64), [""])
        event_words, metadata_words = self._columns.stats.words(stat), self._metadata.words(stat)
        of_rows = np.append(metadata_words.codes, -1)[self.rows]
        others = np.where(of_rows >= 0, of_rows + len(event_words.words), -1)
        return words_by_code(
            np.where(event_words.codes >= 0, event_words.codes, others), [*event_words.words, *metadata_words.words, ""]
        )

    def _category(self, known: CodedWords) -> pd.Categorical:
        return words_by_code(np.append(known.codes, -1)[self.rows], [*known.words, ""])


@dataclass(frozen=True, slots=True)
class Plane:
    """A device, a host, or the metadata of programs."""

    name: str
    lines: tuple[Line, ...]
    metadata: Metadata
    stats: Mapping[str, Value]
    stat_names: Mapping[int, str]
    """Id -> name of every statistic in the plane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One `xplane.pb`, or one Chrome trace: what one host recorded."""

    path: str
    planes: tuple[Plane, ...]
    zero_ns: int
    """The zero of all start times: that of the earliest line, or of another host in the same session."""
    notes: tuple[str, ...] = ()
    """Notes on what could not be read."""
    source: str = "measured"
    """`modelled` of a trace that this project wrote of its model."""
    label: str = ""
    """The trace's description of itself; "" for none."""
    one_at_a_time: bool = True
    """Whether a device's line shows one operation at a time, and nests others in it; not where several threads of a
    CPU are laid out on one line."""
    stands_for: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Shown device -> the devices that it represents, where there are several."""

    @property
    def zero_unix_ns(self) -> int | None:
        """The zero of all start times since 1970, by the profile's own start; `None` where it has none.

        Lines count from that start (`profile_start_time` of plane `Task Environment`), or since 1970 themselves.
        """
        if self.zero_ns > _YEAR_NS:
            return self.zero_ns
        starts = [plane.stats.get("profile_start_time") for plane in self.planes]
        known = [start for start in starts if isinstance(start, int) and start > _YEAR_NS]
        return known[0] + self.zero_ns if known else None

    def zero_of(self, plane: Plane) -> int:
        """The zero of a plane: `zero_ns`, or its own if it has another clock, since far from zero a float cannot hold
        fractions of a nanosecond."""
        plane_zero_ns = earliest([plane])
        return self.zero_ns if one_clock(self.zero_ns, plane_zero_ns) else plane_zero_ns


def earliest(planes: Sequence[Plane]) -> int:
    """The time of the earliest line with events within a month of the latest; of TPU planes if there are any."""
    filled = [plane for plane in planes if any(map(len, plane.lines))]
    devices = [plane for plane in filled if plane.name.startswith(_DEVICE)]
    stamps = [line.timestamp_ns for plane in devices or filled for line in plane.lines if len(line)]
    return min((stamp for stamp in stamps if one_clock(stamp, max(stamps))), default=0)


def one_clock(stamp_ns: int, other_ns: int) -> bool:
    """Whether two times can be of one clock: no recording lasts a month."""
    return abs(stamp_ns - other_ns) < _MONTH_NS
