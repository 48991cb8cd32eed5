"""A graph that is simulated, and where."""

from dataclasses import dataclass, field

from compare.network.astra_sim.options import Options
from compare.network.graph.graph import Graph
from compare.network.machines.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A graph, and the machine it runs on."""

    name: str
    graph: Graph
    machine: Machine
    """In ticks of ASTRA-sim, or in ns of our own engine."""
    tick_ps: int
    unnamed: frozenset[int] = frozenset()
    eager: bool = False
    """Whether messages leave before their receivers have come: in traces of other tools."""
    compute: str = ""
    """Whose rates its computation has, where they are a user's: `calibrated on our pod`."""
    options: Options = field(default_factory=Options)
    """Of ASTRA-sim."""
