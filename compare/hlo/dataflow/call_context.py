"""Call contexts: a computation together with the chain of calls that leads to it from ENTRY."""

from compare.hlo.text.instruction import Computation, Instruction


class CallContext:
    """A computation and the chain of calls to it.  ENTRY has no call; a loop's body stands for all its iterations."""

    __slots__ = ("_inner", "call", "computation", "depth", "forwards", "in_body", "outer")

    def __init__(
        self, computation: Computation, *, call: Instruction | None = None, outer: "CallContext | None" = None
    ):
        self.computation, self.call, self.outer = computation, call, outer
        self.in_body = call is not None and call.opcode == "while" and computation is body_of(call)
        self.depth: int = (outer.depth if outer else 0) + self.in_body
        """How many loops are around it."""
        self._inner: dict[tuple[Instruction, str], CallContext] = {}
        self.forwards: dict[
            tuple[Instruction, tuple[int, ...]], list[tuple[CallContext, Instruction, tuple[int, ...]]] | None
        ] = {}
        """Cache of `dataflow.step_through` for values of this context."""

    def inside(self, call: Instruction, computation: Computation) -> "CallContext":
        """The context of `computation` when `call`, an instruction of this one, calls it; the same object each time."""
        key = (call, computation.name)
        if key not in self._inner:
            self._inner[key] = CallContext(computation, call=call, outer=self)
        return self._inner[key]

    @property
    def chain(self) -> "list[CallContext]":
        """From the outermost to this one."""
        frames: list[CallContext] = []
        frame: CallContext | None = self
        while frame is not None:
            frames.append(frame)
            frame = frame.outer
        return frames[::-1]


def body_of(loop: Instruction) -> Computation:
    return loop.computation.module.computation(loop.attribute("body").lstrip("%"), loop)


def condition_of(loop: Instruction) -> Computation:
    return loop.computation.module.computation(loop.attribute("condition").lstrip("%"), loop)


def branches_of(choice: Instruction) -> list[Computation]:
    """The branches of a conditional by index; of a predicated one, 0 is false and 1 is true."""
    if "true_computation" in choice.attributes:
        module = choice.computation.module
        names = [choice.attribute(key).lstrip("%") for key in ("false_computation", "true_computation")]
        return [module.computation(name, choice) for name in names]
    return choice.callees


def branch_operand(choice: Instruction, branch: int) -> Instruction:
    """The operand that a conditional passes to a branch."""
    first_is_true = "true_computation" in choice.attributes
    return choice.operand(2 - branch if first_is_true else 1 + branch)


ONE_CALL = {"fusion", "call", "async-start", "call-start", "fusion-start", "custom-call"}
"""Opcodes whose computation takes the operands as its parameters and runs once."""


def runs_once(item: Instruction) -> bool:
    """True if its computation runs once, from its operands to its result (not a custom call's comparator)."""
    if item.opcode not in ONE_CALL or not item.callees:
        return False
    return item.opcode != "custom-call" or item.callees[0].num_parameters == len(item.operand_names)
