"""What `compare.simulate` answers: cycles by ASTRA-sim's rules, or ns by our own."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compare.simulate.request import Request

if TYPE_CHECKING:
    from compare.network.native.times import Pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of the last rank, and a line for each part of the way."""

    as_astra_sim: bool
    total: float
    """Cycles of 1 ns, or ns."""
    arrivals: tuple[float, ...] = ()
    """Of messages."""
    passes: "tuple[tuple[int, tuple[Pass, ...]], ...]" = ()
    """Of a collective in our own model, as they are simulated: (chunks, their passes), once for all chunks that go
    through the dims in one order; the dims are the machine's."""
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
                {
                    "collective": each.kind,
                    "dim": each.dim,
                    "algorithm": each.algorithm,
                    "chunks": chunks,
                    "bytes": round(each.num_bytes, 3),
                    "steps": each.steps,
                    "ns": round(each.ns, 3),
                }
                for chunks, passes in self.passes
                for each in passes
            ],
        }


def answer_request(request: Request) -> Answer:
    """Raises `TimingError` where the rules asked for have no such collective."""
    machine, collective = request.machine, request.collective
    if request.as_astra_sim:
        from compare.network.astra_sim import replay

        if collective is None:
            ticks = replay.time_messages(machine, request.messages, aware=request.aware)
            return Answer(as_astra_sim=True, total=max(ticks), arrivals=ticks)
        return Answer(as_astra_sim=True, total=max(replay.count_cycles(machine, collective, aware=request.aware)))
    if collective is None:
        from compare.network.engine.pairs import time_messages

        arrivals = tuple(time_messages(machine, request.messages))
        return Answer(as_astra_sim=False, total=max(arrivals), arrivals=arrivals)

    from compare.network.native import times

    total = times.time_collective(machine, collective)
    dims = machine.list_dims(collective.group)
    alike = Counter(tuple(chunk) for chunk in times.list_chunks(machine, collective))
    passes = tuple(
        (chunks, tuple(replace(each, dim=dims[each.dim]) for each in of_chunk)) for of_chunk, chunks in alike.items()
    )
    return Answer(as_astra_sim=False, total=total, passes=passes, launch_ns=machine.launch_ns)
