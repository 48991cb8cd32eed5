"""Runs of the real ASTRA-sim, as configurations and cycles: `astra_sim.csv`.

Every row is one run of the analytical backends, built from ASTRA-sim 518bd513, astra-network-analytical 599a047 and
Chakra f37c2bb, with a trace of one collective for each rank.  Bandwidth is its "GB/s" (2^30 bytes), latency ns,
memory GB/s (1e9), endpoint ns; the two last columns are the cycles of the last and of the first rank to finish.  Rows
with a bandwidth of 0.0347 have ticks of 1 ps: latencies × 1000, rates ÷ 1000.  Among the rows are ASTRA-sim's own
examples (323,560, 57,426, 117,780).
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compare.network.machines.collective import Collective
from compare.network.machines.machine import Algorithms, Dim, Machine
from compare.network.machines.words import parse_algorithm

FILE = Path(__file__).with_name("astra_sim.csv")


@dataclass(frozen=True)
class Run:
    words: dict[str, str]
    machine: Machine
    collective: Collective
    aware: bool
    last: int
    first: int

    @property
    def name(self):
        keys = ("collective", "dims", "algorithm", "multi", "chunks", "active", "queues", "backend", "group", "bytes")
        return " ".join(self.words[key] for key in keys)


@cache
def read_runs():
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(map(make_run, csv.DictReader(file)))


def make_run(words):
    dims = tuple(
        Dim(
            kind=kind.split(":")[0],
            size=int(kind.split(":")[1]),
            bytes_per_ns=float(rate) * 2**30 / 1e9,
            latency_ns=float(latency),
        )
        for kind, rate, latency in zip(
            words["dims"].split(","), words["bandwidth"].split(","), words["latency"].split(","), strict=True
        )
    )
    machine = Machine(
        dims=dims,
        algorithms=Algorithms.alike(tuple(map(parse_algorithm, words["algorithm"].split(",")))),
        multi=words["multi"],
        chunks=int(words["chunks"]),
        active_chunks=int(words["active"]),
        queues=int(words["queues"]),
        memory_bytes_per_ns=float(words["memory"]),
        endpoint_ns=int(words["endpoint"]),
    )
    group = tuple(map(int, words["group"].split(","))) if words["group"] else None
    return Run(
        words=words,
        machine=machine,
        collective=Collective(kind=words["collective"], num_bytes=int(words["bytes"]), group=group),
        aware=words["backend"] == "aware",
        last=int(words["last_rank"]),
        first=int(words["first_rank"]),
    )
