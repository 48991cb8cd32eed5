"""A toy TPU: it runs a compiled program in the order of its text and records what a real one's profile would show.

Every loop turns twice, of a branch the last is taken, every operation takes 5 ns.
"""

from collections import Counter, deque

from compare.hlo.text.module import Module
from tests.compare.timeline.spaces import Space, data, number

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "iota", "partition-id"}
TURNS, LENGTH = 2, 5
SPARSE = '"sparsecore"'


class ToyTpu:
    """One device.  executed: how often each instruction ran, those inside fusions and calls too."""

    def __init__(self, space: Space, module: Module, *, device: int = 0, own_line: bool = True):
        self.module = module
        self.plane = space.plane(f"/device:TPU:{device}", device_type_string="TPU v5 lite")
        self.lines = {name: self.plane.line(name) for name in ("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops")}
        self.sparse = space.plane(f"/device:TPU:{device} SparseCore 0").line("Sparse Core Ops")
        self.own_line = own_line
        self.now = 0
        self.executed: Counter[str] = Counter()
        self.begun: dict[str, deque] = {}

    def steps(self, count: int) -> None:
        for step in range(count):
            begin = self.now
            self._run(self.module.entry)
            self.lines["Steps"].event(str(step), begin, self.now - begin)
            self.lines["XLA Modules"].event("jit_f(17)", begin, self.now - begin, stats={"run_id": step})
            self.now += LENGTH

    def _run(self, computation) -> None:
        for item in computation:
            if item.opcode not in FREE:
                self._execute(item)

    def _execute(self, item) -> None:
        begin = self.now
        self._count(item)
        if item.opcode in ("while", "call", "conditional"):
            self.now += 1
            body = (
                self.module.computations[item.attributes["body"].lstrip("%")]
                if item.opcode == "while"
                else item.callees[-1]
            )
            for _ in range(TURNS if item.opcode == "while" else 1):
                self._run(body)
        else:
            self.now += LENGTH
        self._show("XLA Ops", item, begin)
        if item.opcode.endswith("-start") or item.opcode in ("send", "recv"):
            self.begun.setdefault(item.name, deque()).append((begin, item))
            if item.attributes.get("async_execution_thread") == SPARSE:
                for inner in item.callees[0]:
                    if inner.opcode not in FREE:
                        self.sparse.event(_line(inner), begin + 1, LENGTH, display=inner.name)
        if item.opcode.endswith("-done"):
            waiting = self.begun.get(item.operands[0].name)
            if waiting:
                begin, start = waiting.popleft()
                if self.own_line and start.opcode not in ("send", "recv"):
                    self._show("Async XLA Ops", start, begin)

    def _count(self, item) -> None:
        self.executed[item.name] += 1
        if item.opcode in ("fusion", "custom-call") or item.opcode.endswith("-start"):
            for inner in (callee for computation in item.callees for callee in computation):
                self._count(inner)

    def _show(self, line: str, item, begin: int) -> None:
        self.lines[line].event(_line(item), begin, self.now - begin, display=item.name)


def _line(item) -> str:
    text = item.text.strip().removeprefix("ROOT ")
    return text if text.startswith("%") else f"%{text}"


def write_program(space: Space, module: Module, proto: bytes) -> None:
    """The program, as its profile carries it: with the devices that it ran on."""
    devices = b"".join(data(3, number(1, device)) for device in range(module.num_partitions))
    number_by_place = data(15, number(1, 1) + number(2, module.num_partitions) + devices)
    space.programs({"jit_f(17)": data(1, proto + (number_by_place if module.replica_count == 1 else b""))})
