"""A Chrome trace as planes and lines, as `xplane.pb` has them: processes are planes, threads are lines.

XLA's profiler makes these traces of its own planes (openxla/xprof, `trace_viewer`), and leaves out the programs.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from compare.hlo.collective import COLLECTIVE_KINDS
from compare.hlo.text.errors import HloError
from compare.hlo.text.shapes import Array, read_shape
from compare.profile.chrome.columns import Kind, TraceEvents, read_events
from compare.profile.chrome.events import read_file, read_start
from compare.profile.xplane.device_events import words_by_code
from compare.profile.xplane.xspace import Line, Metadata, Plane, Space
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.errors import TimingError

OWN_KEY = "wirediff"
"""In the trace's `metadata`: what `compare.export` says of a trace that it writes."""
_CPU_DEVICE = "/device:CPU:"
_DEVICE = re.compile(r"/device:[A-Z]+:\d+$")
# `StepMarker`, `$core.py:331 step`, `$/vllm/v1/engine/core.py:402 step`: a name of many, with no number in it.
_STEP_NAMES = re.compile(r"\$\S*core\.py:\d+ step|StepMarker")
"""Marks of steps on a host that bear no number: vLLM's frame of Python, torch_xla's mark."""
_MODULE = re.compile(r"(?:p?jit|pmap|SyncTensorsGraph)[\w.<>]*(?:\(\d+\))?")
_STEP = re.compile(r"\d+")
_CLOCKS_NS = 1000.0
"""The most by which `ts` − `device_offset_ps` may vary on one device; beyond it they are of two clocks."""
_FINE_NS = 0.00051
"""Half a picosecond: where the two agree to it, `ts` has all digits."""
_WORDS = ("long_name", "hlo_category", "tf_op", "hlo_op", "source", "source_stack")
_SHAPED = re.compile(r"(?:all-reduce|all-gather|all-to-all|collective-permute)(?:-start)?")
_COLLECTIVE = re.compile(rf"(?:{'|'.join(COLLECTIVE_KINDS)})(?:-start)?")


class ChromeLine:
    """The events of one thread."""

    def __init__(self, trace: "_Trace", rows: Ints, *, id: int, name: str, marks_steps: bool = False):
        self.id = id
        self.name = name
        self.timestamp_ns = trace.zero_ns
        self._trace = trace
        self._rows = rows
        self._marks_steps = marks_steps

    def __len__(self) -> int:
        return self._rows.size

    @property
    def names(self) -> pd.Categorical:
        """The line of HLO, where the trace has it."""
        return self._words("names", [kind.long_name or kind.name for kind in self._trace.events.kinds])

    @property
    def display_names(self) -> pd.Categorical:
        return self._words("display_names", [kind.name for kind in self._trace.events.kinds])

    def start_ns(self, zero_ns: int) -> Floats:
        return self._trace.start_ns[self._rows] + float(self.timestamp_ns - zero_ns)

    @property
    def duration_ns(self) -> Floats:
        return self._trace.duration_ns[self._rows]

    def numbers(self, stat: str, *, missing: int = -1) -> Ints:
        if stat == "step_num" and self._marks_steps:
            return np.argsort(np.argsort(self.start_ns(0), kind="stable"), kind="stable")
        if stat not in self._trace.events.whole:
            return np.full(len(self), missing, np.int64)
        values = self._trace.events.whole[stat][self._rows]
        return np.where(values == -1, missing, values)

    def floats(self, stat: str) -> Floats:
        if stat == "shown_bytes":
            return self._trace.shown_bytes[self._rows]
        if stat in ("bytes_accessed", "model_flops"):
            of_kind = np.array([getattr(kind, stat) for kind in self._trace.events.kinds], np.float64)
            return of_kind[self._trace.events.kind[self._rows]]
        values = self._trace.events.numbers.get(stat)
        return np.full(len(self), np.nan) if values is None else values[self._rows]

    def words(self, stat: str) -> pd.Categorical:
        if stat not in _WORDS:
            return pd.Categorical.from_codes(np.zeros(len(self), np.int8), categories=pd.Index([""], dtype=object))
        return self._words(stat, [str(getattr(kind, stat)) for kind in self._trace.events.kinds])

    def _words(self, column: str, words: list[str]) -> pd.Categorical:
        """By the kind of each event; `column` names what is the same for all lines."""
        known = self._trace.words
        if column not in known:
            known[column] = words_by_code(np.arange(len(words)), words)
        of_kind = known[column]
        codes = np.asarray(of_kind.codes)[self._trace.events.kind[self._rows]]
        return pd.Categorical.from_codes(codes, categories=of_kind.categories)


class _Trace:
    """Times of a trace's events in ns, and the bytes that they show."""

    def __init__(self, events: TraceEvents):
        self.events = events
        self.process: Ints = np.array([process for process, _ in events.threads], np.int64)[events.thread]
        self.notes: list[str] = []
        self.words: dict[str, pd.Categorical] = {}
        """Columns of words, one for each kind of event."""
        self.zero_ns = math.floor(events.numbers["ts"].min()) * 1000
        self.start_ns = self._starts()
        shown, exact = events.numbers["dur"] * 1e3, events.numbers["device_duration_ps"] / 1e3
        self.duration_ns: Floats = np.where(np.abs(shown - exact) > _FINE_NS, exact, shown)
        self.shown_bytes = self._bytes()

    def _starts(self) -> Floats:
        """From `zero_ns`: `device_offset_ps` on the clock of `ts`, since both count from times of their own.

        Of a `ts` that is large few digits are left.  No operation comes before the step that it begins: of the times
        between the two clocks, equal but for these digits, the largest is taken.
        """
        shown = (self.events.numbers["ts"] - self.zero_ns / 1e3) * 1e3
        offset = self.events.numbers["device_offset_ps"] / 1e3
        offset[np.isinf(offset)] = np.nan
        starts: Floats = shown.copy()
        apart = 0
        for process in np.unique(self.process[~np.isnan(offset)]).tolist():
            rows = np.flatnonzero((self.process == process) & ~np.isnan(offset))
            between = shown[rows] - offset[rows]
            middle = np.sort(between)[between.size // 2]
            # The median, because a single operation with an offset of another clock, 0.9 ms away, must not move the
            # others.
            near = np.abs(between - middle) <= _CLOCKS_NS
            shift = round(float(between[near].max()), 3)
            chosen = near & (np.abs(between - shift) > _FINE_NS)
            starts[rows[chosen]] = offset[rows[chosen]] + shift
            apart += int((~near).sum())
        if apart:
            self.notes.append(f"device_offset_ps of {apart} events is of another clock than ts: ts is taken")
        return starts

    def _bytes(self) -> Floats:
        """Of a collective the bytes that its shape or `bytes_accessed` shows: for one whose HLO is not known."""
        return np.array([_shown_bytes(kind) for kind in self.events.kinds], np.float64)[self.events.kind]


def _shown_bytes(kind: Kind) -> float:
    category = kind.hlo_category.lower()
    if not _COLLECTIVE.fullmatch(category):
        return np.nan
    # `shape_with_layout` is the result's: the payload of an all-reduce, and a part of a reduce-scatter's, which takes
    # `bytes_accessed`.  Of an `all-reduce fusion` neither is the collective's alone.
    of_shape = _shape_bytes(kind.shape) if _SHAPED.fullmatch(category) else np.nan
    return kind.bytes_accessed if np.isnan(of_shape) else of_shape


def _shape_bytes(text: str) -> float:
    try:
        shape = read_shape(text) if text else None
    except HloError:
        return np.nan
    return float(shape.num_bytes) if isinstance(shape, Array) else np.nan


def is_json(path: str | Path) -> bool:
    """Whether a file, gzipped or not, begins as JSON does, or is named as JSON."""
    if re.search(r"\.json(\.gz)?$", str(path)):
        return True
    try:
        return read_start(Path(path)).lstrip()[:1] in (b"{", b"[")
    except OSError:
        return False


def read_trace(path: str | Path) -> Space:
    """Read one Chrome trace, gzipped or not.

    `OSError` where it can't be opened, `TimingError` where it is none, is cut, or of GPUs; either names it.
    """
    try:
        events = read_events(read_file(Path(path)))
        if "deviceProperties" in events.about:
            raise TimingError("a trace of GPUs, as PyTorch writes them; traces of TPUs can be read")
        if _is_drawing(events.about):
            raise TimingError(
                "a drawing of timelines that a report makes for Perfetto; give a profile, or export the run folder "
                "with `python -m compare.export RUN --to ccl-bench`"
            )
    except TimingError as error:
        raise TimingError(f"{path}: {error}") from None
    trace = _Trace(events)
    about = _own(events.about)
    names = {process: _as_device(name) if about else name for process, name in events.process_names.items()}
    processes = dict.fromkeys(process for process, _ in events.threads)
    planes = [_plane(trace, process, names.get(process, f"process {process}")) for process in processes]
    return Space(
        path=str(path),
        planes=tuple(planes),
        zero_ns=trace.zero_ns,
        notes=(*events.notes, *trace.notes),
        source="modelled" if about.get("source") == "modelled" else "measured",
        label=str(about.get("label", "")),
        one_at_a_time=not (about and any(map(_is_cpu, events.process_names.values()))),
        stands_for=_stands_for(about.get("stands_for")),
    )


def _is_drawing(about: Mapping[str, object]) -> bool:
    """Whether `compare.run` drew it: `timeline.perfetto.json.gz`, whose slices are no operations."""
    other = about.get("otherData")
    return isinstance(other, dict) and other.get("producer") == OWN_KEY


def _own(about: Mapping[str, object]) -> Mapping[str, object]:
    metadata = about.get("metadata")
    written = metadata.get(OWN_KEY) if isinstance(metadata, dict) else None
    return written if isinstance(written, dict) else {}


def _is_cpu(process: str) -> bool:
    """Whether a process is a device of XLA:CPU, whose operations run on several threads."""
    return process.startswith(_CPU_DEVICE)


def _as_device(name: str) -> str:
    """CPU devices, in a trace of `compare.export`, are laid out as those of TPUs are."""
    return name.replace(_CPU_DEVICE, "/device:TPU:")


def _stands_for(value: object) -> dict[int, tuple[int, ...]]:
    """Of devices that are shown once for several: those."""
    if not isinstance(value, dict):
        return {}
    return {
        int(device): tuple(alike)
        for device, alike in value.items()
        if str(device).isdecimal() and isinstance(alike, list) and all(isinstance(number, int) for number in alike)
    }


def _plane(trace: _Trace, process: int, name: str) -> Plane:
    events = trace.events
    threads = [place for place, key in enumerate(events.threads) if key[0] == process]
    named = any(events.threads[place] in events.thread_names for place in threads)
    lines: list[Line] = []
    for place in threads:
        _, thread = events.threads[place]
        rows = np.flatnonzero(events.thread == place)
        if _DEVICE.match(name) and not named:
            lines += _unnamed(trace, rows, thread)
        elif _DEVICE.match(name):
            lines.append(ChromeLine(trace, rows, id=thread, name=events.thread_names.get((process, thread), "")))
        else:
            lines += _host_lines(trace, rows, thread, events.thread_names.get((process, thread), ""))
    stats = dict(enumerate(("step_num", "run_id", *_WORDS)))
    return Plane(name=name, lines=tuple(lines), metadata=Metadata.empty(), stats={}, stat_names=stats)


def _unnamed(trace: _Trace, rows: Ints, thread: int) -> list[Line]:
    """The lines of a device whose threads bear no names, by what stands on them."""
    kinds = trace.events.kinds
    is_op = np.array([bool(kind.hlo_category or kind.long_name) for kind in kinds], np.bool_)
    is_module = ~is_op & np.array([bool(_MODULE.fullmatch(kind.name)) for kind in kinds], np.bool_)
    is_step = ~is_op & np.array([bool(_STEP.fullmatch(kind.name)) for kind in kinds], np.bool_)
    code = trace.events.kind[rows]
    parts: dict[str, Mask] = {
        "Steps": is_step[code],
        "XLA Modules": is_module[code],
        "XLA Ops": ~(is_step | is_module)[code],
    }
    return [ChromeLine(trace, rows[mask], id=thread, name=name) for name, mask in parts.items() if mask.any()]


def _host_lines(trace: _Trace, rows: Ints, thread: int, name: str) -> list[Line]:
    """A thread of a host; marks of steps without numbers stand on a line of their own, and are counted."""
    marks = np.array([bool(_STEP_NAMES.fullmatch(kind.name)) for kind in trace.events.kinds], np.bool_)
    counted = marks[trace.events.kind[rows]] & (trace.events.whole["step_num"][rows] == -1)
    lines: list[Line] = [ChromeLine(trace, rows[~counted], id=thread, name=name)]
    if counted.any():
        lines.append(ChromeLine(trace, rows[counted], id=thread, name=name, marks_steps=True))
    return lines
