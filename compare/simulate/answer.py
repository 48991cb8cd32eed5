"""What `compare.simulate` answers: cycles by ASTRA-sim's rules, or ns by our own."""

from dataclasses import dataclass, replace

from compare.simulate.request import Request
from compare.timing.network.astra_sim import replay
from compare.timing.network.engine.pairs import time_messages
from compare.timing.network.native import times


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of the last rank, and a line for each part of the way."""

    as_astra_sim: bool
    total: float
    """Cycles of 1 ns, or ns."""
    arrivals: tuple[float, ...] = ()
    """Of messages."""
    passes: tuple[times.Pass, ...] = ()
    """Of one chunk of a collective, in our own model; their dims are the machine's."""
    launch_ns: float = 0.0
    """Before the first pass, in our own model."""

    def to_json(self) -> dict[str, object]:
        """`{"cycles": 28081}`, or ns with what they are made of."""
        if self.as_astra_sim:
            return {"cycles": int(self.total)} | ({"arrivals": list(map(int, self.arrivals))} if self.arrivals else {})
        answer: dict[str, object] = {"ns": round(self.total, 3), "model": "native"}
        if self.arrivals:
            return answer | {"arrivals": [round(ns, 3) for ns in self.arrivals]}
        return answer | {
            "launch_ns": round(self.launch_ns, 3),
            "passes": [
                {"collective": each.kind, "dim": each.dim, "algorithm": each.algorithm,
                 "bytes": round(each.num_bytes, 3), "steps": each.steps, "ns": round(each.ns, 3)}
                for each in self.passes
            ],
        }  # fmt: skip


def answer_request(request: Request) -> Answer:
    """Raises `TimingError` where the rules asked for have no such collective."""
    machine, collective = request.machine, request.collective
    if request.as_astra_sim:
        if collective is None:
            ticks = replay.time_messages(machine, request.messages, aware=request.aware)
            return Answer(as_astra_sim=True, total=max(ticks), arrivals=ticks)
        return Answer(as_astra_sim=True, total=max(replay.count_cycles(machine, collective, aware=request.aware)))
    if collective is None:
        arrivals = tuple(time_messages(machine, request.messages))
        return Answer(as_astra_sim=False, total=max(arrivals), arrivals=arrivals)
    total = times.time_collective(machine, collective)
    passes = times.list_passes(machine, collective, collective.num_bytes / machine.chunks)
    dims = times.list_group_dims(machine, collective.group)
    of_machine = tuple(replace(each, dim=dims[each.dim]) for each in passes)
    return Answer(as_astra_sim=False, total=total, passes=of_machine, launch_ns=machine.launch_ns)
