"""Profiles of XLA:CPU, of JAX and of torch_xla: the operations of each device, from the threads of the host.

XLA:CPU runs a program as thunks.  A thunk's event has `hlo_op`, `hlo_module` and `program_id`; JAX's also `run_id`
and `device_ordinal` (openxla/xla, xla/backends/cpu/runtime/thunk.cc, `TraceMeEncode`), but not torch_xla 2.9's: there
`find_launches` infers device and run.  Events inside a thunk (`Rendezvous`, `Wait: …`, parts of a parallel loop)
are no operations.  A device has no line of its own: all of its operations are main, whichever thread ran them.  An
operation that another thread finishes is two events, the call and, as `end: NAME`, that thread's part, without the
wait between them; communication is always one event.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.profile.platforms.threads.launch_chain import COMPLETE, LAUNCHES_ALL
from compare.profile.platforms.threads.launches import device_places, find_launches, launch_times_ps
from compare.profile.platforms.threads.marks import find_marks, steps_of
from compare.profile.platforms.threads.rendezvous import Arrivals, find_arrivals
from compare.profile.platforms.threads.thread_timeline import LAST, NONE, Spans, Threads
from compare.profile.platforms.threads.thunks import find_ends
from compare.profile.xplane.device_events import DeviceEvents, concat_frames, frame, map_words, no_events, words_by_code
from compare.profile.xplane.xspace import Plane, Space
from compare.timeline.arrays import Floats, Ints

_HOST = "/host:CPU"
_PS = 1e3
END = "end: "
"""Prefix of the second event of an operation that another thread finishes."""


def is_cpu(space: Space) -> bool:
    """Whether the profile shows programs on XLA:CPU."""
    return any("hlo_op" in plane.stat_names.values() for plane in _hosts(space))


def op_events(space: Space) -> DeviceEvents:
    """The operations of this host's devices, and the annotated steps."""
    threads = Threads([line for plane in _hosts(space) for line in plane.lines], space.zero_ns)
    names = threads.words("hlo_op")
    ops = np.flatnonzero(np.asarray(names != ""))
    if not ops.size:
        return DeviceEvents(events=no_events())
    arrivals = find_arrivals(threads)
    devices = _devices(threads, ops, arrivals)
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
    num_inferred: int
    """Operations whose device was inferred."""
    renumbered: bool
    """Whether devices have other numbers than the process gives them."""


def _devices(threads: Threads, ops: Ints, arrivals: Arrivals) -> _Devices:
    complete = threads.events_named(COMPLETE)
    events = np.concatenate([ops, complete])
    own_device, own_run = threads.numbers("device_ordinal")[events], threads.numbers("run_id")[events]
    is_named = (own_device != NONE) & (own_run != NONE)
    # Groups name devices by the process's numbers, which in torch_xla seem to be the indices in the program.
    launches = find_launches(threads, events, None if is_named.all() else arrivals)
    index_of = device_places(threads) if is_named.any() else {}
    renumbered = any(number != ordinal for number, ordinal in index_of.items())
    device = np.where(is_named, _renumber(own_device, index_of) if renumbered else own_device, launches.device)
    run = np.where(is_named, own_run, launches.run)
    first = slice(ops.size)
    return _Devices(
        device=device[first],
        run=run[first],
        launched_ps=_launched(threads, ops, run[first], launches.run[first]),
        completed_ps=_completed(device, run, threads.time(threads.ends[events]), ops.size),
        num_inferred=int((~is_named[first]).sum()),
        renumbered=renumbered,
    )


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


def _launched(threads: Threads, ops: Ints, run: Ints, launch: Ints) -> Ints:
    """For each operation, when its run was launched."""
    runs, code = np.unique(run, return_inverse=True)
    first, begun = np.full(runs.size, LAST), np.full(runs.size, LAST)
    np.minimum.at(first, code, np.where(launch >= 0, launch, LAST))
    np.minimum.at(begun, code, threads.time(threads.begins[ops]))
    named = threads.events_named(LAUNCHES_ALL)
    index = np.searchsorted(runs, threads.numbers("run_id")[named])
    same = np.append(runs, NONE)[index] == threads.numbers("run_id")[named]
    first[index[same]] = named[same]
    known = (first != LAST) & (runs != -1)
    begun[known] = launch_times_ps(threads, first[known])
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
    if inferred := devices.num_inferred:
        yield f"{inferred} of {num} operations name no device: inferred from the context ids that link threads"
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
