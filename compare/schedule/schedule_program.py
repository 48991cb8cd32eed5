"""The schedule in the model's form: runs of compute, collectives, local copies, loops and branches.

The text of a scheduled program is in the order in which the TensorCore executes it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from compare.hlo.collective import Collective
from compare.hlo.collectives.event_names import EventRole
from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.integer_ops import MOST_ELEMENTS, NotUnderstood
from compare.hlo.counts.partition_index import first_call_context
from compare.hlo.dataflow.dataflow import CallContext, Value, body_of, branches_of, condition_of, step_through
from compare.hlo.provenance.provenance import Provenance
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.module import Module
from compare.schedule.costs import InstructionCosts, is_unknown
from compare.schedule.work.arithmetic import Arithmetic, ArithmeticCounts
from compare.schedule.work.memory import copied_bytes, is_free
from compare.timeline.arrays import Floats, Ints

SHORTEST_NS = 1.0
"""Shorter operations are work of the scalar unit, which profiles do not show either."""
MOST_REPEATED = 20_000
"""A loop without communication is unrolled up to this many operations; a longer one is one event."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive operations without a wait."""

    names: tuple[str, ...]
    ns: Floats
    memory_ns: float
    """Time in the device's memory."""
    total_ns: float
    work: Floats
    """(operations, 3): matrix_flops, vector_ops, memory_bytes."""


@dataclass(frozen=True, slots=True)
class CollectiveOp:
    """A collective, or its start or done."""

    name: str
    row: Collective
    part: str
    """`whole`, `start` or `done`."""
    text: str
    ends: tuple[str, ...] = ()
    """Of a done: the rows that it may end; it ends the one that started first."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The start of an asynchronous local copy, or its end (`ns` is then 0)."""

    name: str
    start: str
    ns: float
    num_bytes: int
    """Through the device's memory; 0 of an end."""
    is_end: bool


@dataclass(frozen=True, slots=True)
class Loop:
    name: str
    trips: int
    test: "tuple[Node, ...]"
    """The condition, which runs once more than the body."""
    body: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Conditional:
    """A conditional."""

    name: str
    taken: Ints
    """The branch of each device in each iteration of the enclosing loops; a dim of 1: the same for all."""
    branches: "tuple[tuple[Node, ...], ...]"


@dataclass(frozen=True, slots=True)
class Block:
    """A call, which contains operations."""

    name: str
    body: "tuple[Node, ...]"


Node = Run | CollectiveOp | Copy | Loop | Conditional | Block


@dataclass
class Notes:
    """Assumptions of the model, each with its count."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> None:
        self.counts[text] = self.counts.get(text, 0) + 1

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(text if times == 1 else f"{text} ({times} times)" for text, times in self.counts.items())


class Schedule:
    """Builds the nodes of a module, with their costs."""

    def __init__(
        self, module: Module, *, carriers: Mapping[str, EventRole], values: Evaluator, costs: InstructionCosts
    ):
        self._module, self._carriers, self._values, self._costs = module, carriers, values, costs
        self._arithmetic = ArithmeticCounts()
        self._flow = Provenance(module, parts={}, caches=frozenset())
        self.notes = Notes()
        self.scopes: dict[str, str] = {}
        """Instruction that computes, or copies, -> its scope."""

    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the entry computation, with everything that it runs."""
        if self._module.header.get("is_scheduled") != "true":
            self.notes.add("the program is not scheduled: its text is taken for the order in which it runs")
        return self._nodes(CallContext(self._module.entry))

    def _nodes(self, frame: CallContext) -> tuple[Node, ...]:
        builder = _Nodes()
        for item in frame.computation:
            carrier = self._carriers.get(item.name)
            part = "" if carrier is None or item.opcode == "call" else carrier.part
            if carrier is not None and part in ("whole", "start", "done"):
                self._add_collective(builder, frame, item, carrier)
            elif part == "between":
                pass
            elif item.opcode == "while":
                self._loop(builder, frame, item)
            elif item.opcode == "conditional":
                self._choice(builder, frame, item)
            elif item.opcode == "call" and item.callees:
                body = self._nodes(frame.inside(item, item.callees[0]))
                builder.add(Block(item.name, body)) if body else None
            elif item.opcode.endswith("-start"):
                builder.add(Copy(item.name, item.name, self._costs.copy_ns(item), copied_bytes(item), is_end=False))
                self._find_scope(frame, item)
            elif item.opcode.endswith("-done"):
                builder.add(Copy(item.name, item.operand(0).name, 0.0, 0, is_end=True))
                self._find_scope(frame, item)
            else:
                self._compute(builder, frame, item)
        return builder.done()

    def _add_collective(self, builder: "_Nodes", frame: CallContext, item: Instruction, carrier: EventRole) -> None:
        if carrier.part == "start" and item.opcode == "fusion":
            self._compute(builder, frame, item)  # the fusion's compute comes before its start
        ends = self._ended(item, carrier) if carrier.part == "done" else ()
        builder.add(CollectiveOp(item.name, carrier.row, carrier.part, item.text, ends))
        if carrier.part == "done" and item.opcode == "fusion":
            self._compute(builder, frame, item)

    def _ended(self, done: Instruction, carrier: EventRole) -> tuple[str, ...]:
        """The rows that a done may end: in a loop, a start before the loop or one in the previous iteration."""
        rows = {carrier.row.name: None}
        todo: list[Value] = [(first_call_context(done.computation), done.operand(0), ())]
        seen = set(todo)
        for value in todo if done.opcode.endswith("-done") else ():
            start = self._carriers.get(value[1].name)
            if start is not None and start.part == "start":
                rows[start.row.name] = None
                continue
            fresh = [value for value in step_through(value) or [] if value not in seen]
            seen.update(fresh)
            todo += fresh
        return tuple(rows)

    def _compute(self, builder: "_Nodes", frame: CallContext, item: Instruction) -> None:
        if is_free(item) or item.opcode.endswith("-update"):
            return
        if is_unknown(item):
            self.notes.add(f"what {item.name} computes is unknown: only the bytes that it moves count")
        ns = self._costs.compute_ns(item)
        if ns >= SHORTEST_NS:
            builder.compute(item.name, ns, self._costs.memory_ns(item), self._work(item))
            self._find_scope(frame, item)

    def _find_scope(self, frame: CallContext, item: Instruction) -> None:
        if item.name not in self.scopes:
            self.scopes[item.name] = self._flow.scope_of_compute(frame, item)

    def _work(self, item: Instruction) -> Floats:
        """matrix_flops, vector_ops and memory_bytes of one execution."""
        try:
            arithmetic = self._arithmetic.of(item)
        except HloError as error:
            self.notes.add(f"the arithmetic of {item.name} counts as none: {error}")
            arithmetic = Arithmetic()
        return np.array([arithmetic.matrix_flops, arithmetic.vector_ops, self._costs.memory_bytes(item)], np.float64)

    def _loop(self, builder: "_Nodes", frame: CallContext, loop: Instruction) -> None:
        trips = self._values.trips.count(frame, loop)
        if trips is None:
            self.notes.add(f"how often {loop.name} runs is unknown: it is modelled once")
            trips = 1
        test = self._nodes(frame.inside(loop, condition_of(loop)))
        body = self._nodes(frame.inside(loop, body_of(loop)))
        plain = [node for node in (*test, *body) if isinstance(node, Run)]
        if len(plain) < len(test) + len(body):
            builder.add(Loop(loop.name, trips, test, body))
            return
        if trips * sum(len(node.names) for node in plain) > MOST_REPEATED:
            self.notes.add(f"{loop.name} computes {trips} times without a pause: it is shown as one event")
            total, memory = (sum(getattr(node, key) for node in plain) for key in ("total_ns", "memory_ns"))
            work = sum((node.work.sum(axis=0) for node in plain), start=np.zeros(3))
            builder.compute(loop.name, trips * total, trips * memory, trips * work)
            self._find_scope(frame, loop)
            return
        for _ in range(trips):
            for node in (*test, *body):
                builder.run(node)

    def _choice(self, builder: "_Nodes", frame: CallContext, choice: Instruction) -> None:
        branches = tuple(self._nodes(frame.inside(choice, branch)) for branch in branches_of(choice))
        try:
            taken = self._values.branch(frame, choice)
            if taken.size > MOST_ELEMENTS:
                raise NotUnderstood
        except NotUnderstood:
            longest = max(range(len(branches)), key=lambda index: _measure(branches[index]))  # the first of several
            self.notes.add(f"which branch of {choice.name} runs is unknown: its longest is modelled on every device")
            taken = np.full((1,) * (1 + frame.depth), longest, np.int64)
        if any(branches):
            builder.add(Conditional(choice.name, taken.astype(np.int64), branches))


class _Nodes:
    """Collects nodes; consecutive operations become one run."""

    def __init__(self) -> None:
        self._done: list[Node] = []
        self._names: list[str] = []
        self._ns: list[float] = []
        self._work: list[Floats] = []
        self._memory = 0.0

    def compute(self, name: str, ns: float, memory_ns: float, work: Floats) -> None:
        self._names.append(name)
        self._ns.append(ns)
        self._work.append(work)
        self._memory += memory_ns

    def run(self, node: Node) -> None:
        assert isinstance(node, Run)
        self._names += node.names
        self._ns += node.ns.tolist()
        self._work += list(node.work)
        self._memory += node.memory_ns

    def add(self, node: Node) -> None:
        self._close()
        self._done.append(node)

    def done(self) -> tuple[Node, ...]:
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        if self._names:
            ns = np.array(self._ns)
            self._done.append(Run(tuple(self._names), ns, self._memory, float(ns.sum()), np.array(self._work)))
            self._names, self._ns, self._work, self._memory = [], [], [], 0.0


def walk(nodes: Sequence[Node], see: Callable[[Node], None]) -> None:
    """Call `see` for every node, nested ones too, each once."""
    for node in nodes:
        see(node)
        for inner in _inside(node):
            walk(inner, see)


def _inside(node: Node) -> tuple[tuple[Node, ...], ...]:
    if isinstance(node, Loop):
        return node.test, node.body
    if isinstance(node, Conditional):
        return node.branches
    return (node.body,) if isinstance(node, Block) else ()


def _measure(nodes: Sequence[Node]) -> tuple[int, float]:
    """Collectives executed in one pass, and ns of compute."""
    collectives, ns = 0, 0.0
    for node in nodes:
        inner = [(0, 0.0)]
        if isinstance(node, CollectiveOp):
            inner = [(1, 0.0)]
        elif isinstance(node, Run):
            inner = [(0, node.total_ns)]
        elif isinstance(node, Loop):
            times, length = _measure(node.body)
            inner = [(node.trips * times, node.trips * length)]
        elif isinstance(node, Conditional | Block):
            inner = [_measure(part) for part in _inside(node)]
        collectives += max(times for times, _ in inner)
        ns += max(length for _, length in inner)
    return collectives, ns
