"""CPU profiles of JAX: the operations of each device, from the threads of the host.

XLA:CPU runs a program as thunks.  A thunk's event has `hlo_op`, `hlo_module`, `program_id`, `run_id` and
`device_ordinal` (openxla/xla, xla/backends/cpu/runtime/thunk.cc, `TraceMeEncode`).  torch_xla 2.9's have no device: its
own profiles of CPU devices are refused.  Events inside a thunk (`Rendezvous`, `Wait: …`, parts of a parallel loop)
are no operations.  A device has no line of its own: all of its operations are main, whichever thread ran them.  An
operation that another thread finishes is two events, the call and, as `end: NAME`, that thread's part, without the
wait between them; communication is always one event.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.profile.platforms.cpu_threads import (
    LAST,
    NONE,
    Arrivals,
    Spans,
    Threads,
    find_arrivals,
    find_ends,
    find_marks,
    steps_of,
)
from compare.profile.xplane.device_events import DeviceEvents, concat_frames, frame, map_words, no_events, words_by_code
from compare.profile.xplane.xspace import Plane, Space
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError

_HOST = "/host:CPU"
_PS = 1e3
END = "end: "
"""Prefix of the second event of an operation that another thread finishes."""
_LAUNCH = r"\w+Executable::Execute(?: \(.*\))?"
"""Launches a program on all its devices; its `run_id` is the context id of `_LAUNCH_ONE`."""
_LAUNCH_ONE = r"\[\d+\] \w+Executable::Execute.*"
"""Launches it on one device."""
_COMPLETE = r"ThunkExecutor::Execute \(wait for completion\)"
"""Ends when a device has completed a run."""


def op_events(space: Space) -> DeviceEvents:
    """The operations of this host's devices, and the annotated steps.

    `TimingError` where no operation names its device.
    """
    threads = Threads([line for plane in _hosts(space) for line in plane.lines], space.zero_ns)
    names = threads.words("hlo_op")
    ops = np.flatnonzero(np.asarray(names != ""))
    if not ops.size:
        return DeviceEvents(events=no_events())
    arrivals = find_arrivals(threads)
    devices = _devices(threads, ops)
    start, until = threads.time(threads.begins[ops]), find_ends(threads, ops, devices.completed_ps)
    waits = _waits(threads, ops, arrivals)
    call_ends = threads.time(threads.ends[ops])
    late = np.isnan(waits) & (until.resumed_ps > call_ends)
    events = frame(
        {
            "device": devices.device,
            "line": words_by_code(threads.thread[ops], [line.name for line in threads.lines]),
            "name": threads.names[ops],
            "hlo_op": names[ops],
            "module": _modules(threads, ops),
            "text": "",
            "category": "",
            "tf_op": "",
            "main": True,
            "start_ns": start / _PS,
            "duration_ns": (np.where(late, call_ends, until.at_ps) - start) / _PS,
            "wait_ns": waits,
            "run": devices.run,
        },
        length=ops.size,
    )
    steps = steps_of(find_marks(threads), events, devices.launched_ps)
    resumed, finished = until.resumed_ps[late] / _PS, until.at_ps[late] / _PS
    names = map_words(events["name"].array[late], lambda name: f"{END}{name}")
    finishing = events[late].assign(name=names, start_ns=resumed, duration_ns=finished - resumed)
    return DeviceEvents(
        events=concat_frames([events, finishing]),
        steps=steps,
        notes=tuple(_notes(devices, until.unseen, late=int(late.sum()))),
    )


@dataclass(frozen=True, slots=True)
class _Devices:
    device: Ints
    run: Ints
    launched_ps: Ints
    """When each operation's run was launched; where that is not shown, when its first operation began."""
    completed_ps: Ints
    """When its device completed the run; LAST where unknown."""
    renumbered: bool
    """Whether devices have other numbers than the process gives them."""


def _devices(threads: Threads, ops: Ints) -> _Devices:
    complete = threads.events_named(_COMPLETE)
    events = np.concatenate([ops, complete])
    own_device, own_run = threads.numbers("device_ordinal")[events], threads.numbers("run_id")[events]
    is_named = (own_device != NONE) & (own_run != NONE)
    first = slice(ops.size)
    if not is_named[first].any():
        raise TimingError(
            "its operations name no device, as in torch_xla's own profiles of CPU devices; `compare.run --execute cpu` "
            "profiles the same program on JAX's CPU runtime"
        )
    index_of = _device_places(threads)
    renumbered = any(number != ordinal for number, ordinal in index_of.items())
    device = np.where(is_named, _renumber(own_device, index_of) if renumbered else own_device, -1)
    run = np.where(is_named, own_run, -1)
    return _Devices(
        device=device[first],
        run=run[first],
        launched_ps=_launched(threads, ops, run[first]),
        completed_ps=_completed(device, run, threads.time(threads.ends[events]), ops.size),
        renumbered=renumbered,
    )


def _device_places(threads: Threads) -> dict[int, int]:
    """Process number of each device -> its index in the program, for the program with the most devices."""
    launches, ones = threads.events_named(_LAUNCH), threads.events_named(_LAUNCH_ONE)
    partitions_of = dict(
        zip(
            threads.numbers("run_id")[launches].tolist(),
            threads.numbers("num_partitions")[launches].tolist(),
            strict=True,
        )
    )
    columns = (threads.own_context, *map(threads.numbers, ("global_device_id", "replica", "partition")))
    places: dict[int, dict[int, int]] = {}
    for run, number, replica, partition in np.stack([column[ones] for column in columns], axis=1).tolist():
        partitions = partitions_of.get(run, NONE)
        if NONE not in (number, replica, partition, partitions):
            places.setdefault(run, {})[number] = replica * partitions + partition
    return max(places.values(), key=len, default={})


def _completed(device: Ints, run: Ints, end: Ints, num: int) -> Ints:
    """For each of the first `num` events, the end of the completion event of its device and run."""
    pair = np.unique(np.stack([device, run]), axis=1, return_inverse=True)[1].ravel()
    done = np.full(pair.max(initial=0) + 1, LAST)
    known = (device[num:] >= 0) & (run[num:] != -1)
    np.minimum.at(done, pair[num:][known], end[num:][known])
    return done[pair[:num]]


def _renumber(device: Ints, index_of: dict[int, int]) -> Ints:
    """Devices by their index in the program; devices that the program lacks get numbers behind those."""
    ordinals, code = np.unique(device, return_inverse=True)
    spare = max(index_of.values()) + 1
    return np.array([index_of.get(ordinal, spare + ordinal) for ordinal in ordinals.tolist()])[code]


def _launched(threads: Threads, ops: Ints, run: Ints) -> Ints:
    """For each operation, when its run was launched."""
    runs, code = np.unique(run, return_inverse=True)
    begun = np.full(runs.size, LAST)
    np.minimum.at(begun, code, threads.time(threads.begins[ops]))
    launches = threads.events_named(_LAUNCH)
    own = threads.numbers("run_id")[launches]
    index = np.searchsorted(runs, own)
    same = (np.append(runs, NONE)[index] == own) & (own != NONE)
    np.minimum.at(begun, index[same], threads.time(threads.begins[launches[same]]))
    return np.where(run == -1, threads.time(threads.begins[ops]), begun[code])


def _modules(threads: Threads, ops: Ints) -> pd.Categorical:
    """Program names as in the profile's own list, like `jit_f(0)`."""
    names = threads.words("hlo_module")[ops]
    number, program = pd.factorize(threads.numbers("program_id")[ops])
    both, pair = np.unique(np.asarray(names.codes, np.int64) * program.size + number, return_inverse=True)
    words = []
    for name, program_index in zip((both // program.size).tolist(), (both % program.size).tolist(), strict=True):
        words.append(
            names.categories[name]
            + (f"({int(program[program_index]) % 2**64})" if program[program_index] != NONE else "")
        )
    return words_by_code(pair, words)


def _waits(threads: Threads, ops: Ints, arrivals: Arrivals) -> Floats:
    """How long each operation waits in rendezvous; NaN without one."""
    spans = Spans.of(threads.begins[ops], threads.ends[ops])
    op = spans.innermost(threads.begins[arrivals.event])
    waits = np.full(ops.size, np.nan)
    waits[op[op >= 0]] = 0.0
    np.add.at(waits, op[op >= 0], arrivals.wait_ns[op >= 0])
    return waits


def _notes(devices: _Devices, unseen: int, *, late: int) -> Iterator[str]:
    num = devices.device.size
    if unknown := int((devices.device < 0).sum()):
        yield f"the device of {unknown} of {num} operations is not shown"
    if devices.renumbered:
        yield "devices are numbered by their places in the program, not as the process numbers them"
    if late:
        yield f"{late} of {num} operations wait for a thread that finishes them: two events each, without that wait"
    if unseen:
        yield f"the ends of {unseen} of {num} operations are not shown: they are taken to end with their calls"


def _hosts(space: Space) -> list[Plane]:
    return [plane for plane in space.planes if plane.name.startswith(_HOST)]
