"""Simulate a graph on a machine, by the machine's kind of links."""

from compare.network.engine.graph_layout import Plan
from compare.network.engine.graph_simulator import GraphSimulator, SimulatedGraph
from compare.network.engine.messages import MessageSimulator
from compare.network.machines.kinds import SHARED
from compare.network.machines.machine import Machine


def simulate_graph(plan: Plan, machine: Machine, *, eager: bool = False, scale_compute: float = 1.0) -> SimulatedGraph:
    """machine: of the plan's shape, with any rates.  eager: a message leaves before its receiver has come.

    Raises `GraphError` for a deadlock.
    """
    simulator = GraphSimulator if machine.links == SHARED else MessageSimulator
    return simulator(plan, machine, eager=eager, scale_compute=scale_compute).simulate()
