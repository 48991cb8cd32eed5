"""Simulate a compiled program on a machine: expand it once, then simulate it on any number of machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from compare.hlo.collective import Collective
from compare.hlo.text.module import Module
from compare.network.engine.graph_layout import Plan as Layout
from compare.network.engine.graph_simulator import SimulatedGraph
from compare.network.engine.simulate import simulate_graph
from compare.network.graph.expand import expand_step, number_ranks
from compare.network.graph.graph import Graph
from compare.network.graph.repeat import repeat_graph
from compare.network.machines.changes import machine_table
from compare.network.machines.machine import Machine
from compare.network.machines.machine_file import parse_machine
from compare.network.programs.timeline import show_timeline
from compare.schedule.compiler_algorithm import Algorithm, read_algorithm
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import simulate_program
from compare.timeline.errors import TimingError
from compare.timeline.timeline import Timeline
from meshes.mesh_argument import Plan

MOST_SPEED = 1e9
"""Of compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """On what a program is simulated."""

    machine: Machine
    repeat: int = 1
    """Copies of the program side by side, as over an outer data-parallel axis."""
    compute: float = 1.0
    """How much faster than the program's own durations a rank computes."""

    @property
    def label(self) -> str:
        """What figures and tables call it."""
        words = [f"simulated on {self.machine.name}"]
        words += [f"{self.repeat} copies side by side"] * (self.repeat > 1)
        words += [f"compute {self.compute:g} times as fast"] * (self.compute != 1)
        return "; ".join(words)

    def to_json(self) -> dict[str, object]:
        """As `simulation.json` has it, beside a run whose times are simulated."""
        return {"machine": machine_table(self.machine), "repeat": self.repeat, "compute": self.compute}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Raises `TimingError` where it is none."""
        if not isinstance(value, dict) or set(value) != {"machine", "repeat", "compute"}:
            raise TimingError("a simulation is a table of machine, repeat and compute")
        table, repeat, compute = value["machine"], value["repeat"], value["compute"]
        if not isinstance(table, dict) or not isinstance(repeat, int) or not isinstance(compute, int | float):
            raise TimingError("a simulation is a machine, a whole number of copies and a speed of compute")
        if repeat < 1 or not 0 < compute <= MOST_SPEED:
            raise TimingError("a simulation has one copy or more, and a speed of compute more than 0")
        return cls(machine=parse_machine(table, name="machine"), repeat=repeat, compute=float(compute))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program laid out over ranks."""

    graph: Graph
    choices: Mapping[str, Algorithm]
    """The compiler's algorithm of each collective."""
    devices: tuple[int, ...]
    """The logical device of each rank."""
    rows: Mapping[str, Collective]
    notes: tuple[str, ...]
    layouts: dict[tuple[object, ...], Layout] = field(default_factory=dict)
    """By the shape of machines: dims, algorithms, copies."""

    @classmethod
    def of(
        cls, module: Module, rows: Sequence[Collective], plan: Plan, *, name: str, hardware: Hardware | None = None
    ) -> "Program":
        """`TimingError` where it cannot be expanded.  hardware: as of `model_step`."""
        simulated = simulate_program(module, rows, plan, hardware=hardware)
        ranks = number_ranks(plan)
        return cls(
            expand_step(simulated, ranks, name=name),
            {row.name: read_algorithm(row.kind, row.text) for row in rows},
            tuple(np.argsort(np.array(ranks)).tolist()),
            {row.name: row for row in rows},
            simulated.step.notes.lines,
        )

    def layout(self, simulation: Simulation) -> Layout:
        """Machines that differ in rates only share one."""
        machine = simulation.machine
        size = machine.num_ranks
        if size != self.graph.num_ranks * simulation.repeat:
            copies, rest = divmod(size, self.graph.num_ranks)
            hint = f"; --repeat {copies} runs that many copies of it side by side" if copies > 1 and not rest else ""
            raise TimingError(
                f"{machine.name} has {size:,} ranks, and {self.graph.name} {self.graph.num_ranks:,}"
                + (f" times {simulation.repeat}" if simulation.repeat > 1 else "")
                + hint
            )
        shape = tuple((dim.kind, dim.size) for dim in machine.dims)
        key = (shape, machine.algorithms, machine.multi, machine.compiled, machine.links, simulation.repeat)
        if key not in self.layouts:
            kinds = {row.name: row.kind for row in self.rows.values()}
            choices = {name: each for name, each in self.choices.items() if kinds[name] in machine.compiled}
            self.layouts[key] = Layout.of(repeat_graph(self.graph, simulation.repeat), machine, choices)
        return self.layouts[key]

    def simulate(self, simulation: Simulation) -> SimulatedGraph:
        """Raises `TimingError` where the machine does not fit it."""
        return simulate_graph(self.layout(simulation), simulation.machine, scale_compute=simulation.compute)

    def timeline(self, simulation: Simulation) -> Timeline:
        """Of the first copy."""
        return show_timeline(
            self.simulate(simulation), self.devices, self.rows, label=simulation.label, notes=self.notes
        )
