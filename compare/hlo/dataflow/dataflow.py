"""Dataflow, one instruction at a time: back to the inputs of a value, or on to its consumers.

A value is (call context, instruction, path): the element at `path` of what the instruction makes; the empty path is all
of it.  A call context is a computation together with the chain of calls that leads to it from ENTRY.  Steps go through
tuples, fusions, calls, loop carries, branches, and the halves of asynchronous instructions.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.shapes import Array


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
    # A conditional on a predicate passes the operand of the true branch first, and one on an index that of branch 0:
    #   conditional(go, w, k), true_computation=yes, false_computation=no
    first_is_true = "true_computation" in choice.attributes
    return choice.operand(2 - branch if first_is_true else 1 + branch)


ONE_CALL = {"fusion", "call", "async-start", "call-start", "fusion-start", "custom-call"}
"""Opcodes whose computation takes the operands as its parameters and runs once."""


def runs_once(item: Instruction) -> bool:
    """True if its computation runs once, from its operands to its result (not a custom call's comparator)."""
    if item.opcode not in ONE_CALL or not item.callees:
        return False
    # The comparator of `custom-call(w), custom_call_target="TopK", called_computations={greater}` has four parameters
    # for one operand: it compares elements, and does not make the result.
    return item.opcode != "custom-call" or item.callees[0].num_parameters == len(item.operand_names)


Value = tuple[CallContext, Instruction, tuple[int, ...]]
Step = Callable[[Value], Iterable[Value] | None]
"""To the neighbours of a value; None is none."""

# libtpu prefetches a part of a weight without an async wrapper; the new slice is in on-chip memory, S(1):
#   slice-start.4 = ((bf16[64,1,2,1152,256]{…}), bf16[16,1,2,1152,256]{…S(1)}, s32[]{:S(2)}) slice-start(%param.5)
SLICE_STARTS = ("slice-start", "dynamic-slice-start")
"""Their result tuple holds the operand, unchanged, and the new slice."""

PASS_THROUGH_OPCODES = {"copy-done", "copy", "opt-barrier", "optimization-barrier", "async-update"}
"""Opcodes whose result is their only operand, unchanged."""


def step_through(value: Value) -> list[Value] | None:
    """The values that this one may be, unchanged; None where its instruction computes a new value.

    This is the one rule for it.  Several values: which of them it is, is decided as the program runs (a loop's carry, a
    branch), or they are the elements of a tuple, where all of it is requested.
    """
    frame, item, path = value
    forwards, key = frame.forwards, (item, path)
    if key not in forwards:
        forwards[key] = _sources_of(value)
    return forwards[key]


def _sources_of(value: Value) -> list[Value] | None:
    frame, item, path = value
    opcode = item.opcode
    if path and not item.has(path):
        raise item.error(f"it has no element {path}, which is asked for")
    if opcode == "get-tuple-element":
        return [(frame, item.operand(0), (item.integer("index"), *path))]
    if opcode == "parameter":
        return _caller_operand(frame, item, path)
    if opcode == "tuple":
        return (
            [(frame, item.operand(path[0]), path[1:])] if path else [(frame, operand, ()) for operand in item.operands]
        )
    if opcode == "while":
        body = body_of(item)
        return [(frame, item.operand(0), path), (frame.inside(item, body), body.root, path)]
    if opcode == "conditional":
        return [(frame.inside(item, branch), branch.root, path) for branch in branches_of(item)]
    if runs_once(item):
        return _out_of_call(frame, item, path)
    return _asynchronous(value)


def _caller_operand(frame: CallContext, item: Instruction, path: tuple[int, ...]) -> list[Value] | None:
    call, outer = frame.call, frame.outer
    if call is None or outer is None:
        return None
    if call.opcode == "while":
        body = outer.inside(call, body_of(call))
        return [(outer, call.operand(0), path), (body, body.computation.root, path)]
    if call.opcode == "conditional":
        return [(outer, branch_operand(call, branches_of(call).index(frame.computation)), path)]
    if call.opcode not in ONE_CALL:
        return None  # a reduction or a sort hands its computation elements, not operands
    number = item.integer("")
    return [(outer, call.operand(number), path)] if number < len(call.operand_names) else []


def _out_of_call(frame: CallContext, item: Instruction, path: tuple[int, ...]) -> list[Value]:
    """A start's tuple: its operands, then the computation's result, then context scalars."""
    computation = item.callees[0]
    inner = frame.inside(item, computation)
    if not item.opcode.endswith("-start"):
        return [(inner, computation.root, path)]
    return _of_start(frame, item, path, (inner, computation.root, path[1:]))


def _of_start(frame: CallContext, item: Instruction, path: tuple[int, ...], result: Value) -> list[Value]:
    if not path:
        return [*((frame, operand, ()) for operand in item.operands), result]
    if path[0] == 1:
        return [result]
    if path[0] > 1:
        return []
    return (
        [(frame, item.operand(path[1]), path[2:])]
        if len(path) > 1
        else [(frame, operand, ()) for operand in item.operands]
    )


def _asynchronous(value: Value) -> list[Value] | None:
    frame, item, path = value
    opcode = item.opcode
    # The tuple of a copy begins with its result, where those of the other starts begin with their operands:
    #   copy-start.1 = (bf16[16,1,4096]{…S(1)}, bf16[16,1,4096]{…}, u32[]{:S(2)}) copy-start(%param.13)
    #   async-start.0 = ((f32[64,128]{1,0}), f32[16,128]{1,0}, u32[]) async-start(p), calls=async_rs
    if opcode == "copy-done":
        return [(frame, item.operand(0), (0, *path))]
    if opcode == "copy-start":
        return [(frame, item.operand(0), path[1:])]
    if opcode in PASS_THROUGH_OPCODES:
        return [(frame, item.operand(0), path)]
    if opcode in ("async-done", "call-done", "slice-done", "dynamic-slice-done", "fusion-done", "custom-call-done"):
        return [(frame, item.operand(0), (1, *path))]
    if opcode in SLICE_STARTS:
        return None if not path or path[0] == 1 else _of_start(frame, item, path, value)
    if opcode.endswith("-done"):
        start = item.operand(0)
        # A permute's and a gather's start have (operand, result, contexts); an all-reduce's start has the result alone:
        #   all-reduce-start.0 = f32[64,128]{1,0} all-reduce-start(p), channel_id=2
        inside = (1, *path) if start.opcode in ("all-gather-start", "collective-permute-start") else path
        return [(frame, start, inside if start.has(inside) else ())]
    return None


def find_computed(value: Value) -> Value:
    """The computed value behind this one, through pass-through instructions and integer conversions.

    This stops at the parameter of a loop body: the caller knows whether the loop changes it.
    """
    seen: set[Value] = set()
    while value not in seen:
        seen.add(value)
        before = only_source(value)
        if before is None:
            return value
        value = before
    return value


def only_source(value: Value) -> Value | None:
    """The only value that this one can be; None where it is computed here or depends on a branch."""
    frame, item, path = value
    if item.opcode == "parameter" and frame.call is not None and frame.call.opcode == "while":
        return None
    if item.opcode == "while":
        return _left_alone(value) if path else None
    if item.opcode in ("convert", "bitcast", "reshape") and _same_number(item):
        return frame, item.operand(0), ()
    if item.opcode in ("conditional", "tuple") and not (item.opcode == "tuple" and path):
        return None
    before = step_through(value)
    return before[0] if before is not None and len(before) == 1 else None


def _same_number(item: Instruction) -> bool:
    """True for a convert, bitcast or reshape that keeps the value of a scalar integer."""
    shapes = (item.shape, item.operand(0).shape)
    if not all(isinstance(shape, Array) and shape.elements == 1 and shape.dtype[0] in "su" for shape in shapes):
        return False
    after, before = (shape for shape in shapes if isinstance(shape, Array))
    return after.dtype == before.dtype or int(after.dtype[1:]) >= 32 <= int(before.dtype[1:])


def _left_alone(value: Value) -> Value | None:
    """The initial value of a loop result that the body never changes; None for any other."""
    frame, item, path = value
    body = frame.inside(item, body_of(item))
    return (
        (frame, item.operand(0), path)
        if is_carry(find_computed((body, body.computation.root, path)), body, path)
        else None
    )


def is_carry(value: Value, body: CallContext, path: tuple[int, ...]) -> bool:
    """True if a value is the loop-carried element at `path`."""
    frame, item, at = value
    return frame is body and item.opcode == "parameter" and at == path


def inputs_of(value: Value) -> list[Value]:
    """The values that this one is computed from."""
    frame, item, _ = value
    forwarded = step_through(value)
    if forwarded is None:
        return [(frame, operand, ()) for operand in item.operands]
    return [*forwarded, (frame, item.operand(0), ())] if item.opcode == "conditional" else forwarded


def consumers_of(value: Value) -> Iterator[Value]:
    """The values computed from this one, one for each use."""
    frame, item, path = value
    if not item.has(path):
        raise item.error(f"it has no element {path}, which is handed to it")
    for user in item.users:
        if user.opcode == "get-tuple-element":
            index = user.integer("index")
            if not path or path[0] == index:
                yield frame, user, path[1:]
        elif user.opcode == "tuple":
            yield from ((frame, user, (at, *path)) for at, name in enumerate(user.operand_names) if name == item.name)
        elif user.opcode == "while":
            yield from _into_loop(frame, user, path)
            yield frame, user, path
        elif user.opcode == "conditional":
            yield from _into_branches(frame, item, user, path)
        elif runs_once(user):
            yield from _into_call(frame, item, user, path)
        else:
            yield frame, user, _carried_on(user, path)
    if item is item.computation.root:
        yield from _out(frame, path)


def _carried_on(user: Instruction, path: tuple[int, ...]) -> tuple[int, ...]:
    """The path of an operand's element in the result of its user; empty (all of it) where unknown."""
    if user.opcode in PASS_THROUGH_OPCODES or user.opcode == "all-reduce-done":
        return path
    # A start's tuple is its operands, then its results, which its done hands on.
    return path[1:] if user.opcode.endswith("-done") and path[:1] == (1,) else ()


def _into_loop(frame: CallContext, loop: Instruction, path: tuple[int, ...]) -> Iterator[Value]:
    for computation in (condition_of(loop), body_of(loop)):
        yield frame.inside(loop, computation), computation.parameter(0), path


def _into_branches(
    frame: CallContext, item: Instruction, choice: Instruction, path: tuple[int, ...]
) -> Iterator[Value]:
    if choice.operand(0) is item:
        yield frame, choice, ()
    for number, branch in enumerate(branches_of(choice)):
        if branch_operand(choice, number) is item:
            yield frame.inside(choice, branch), branch.parameter(0), path


def _into_call(frame: CallContext, item: Instruction, call: Instruction, path: tuple[int, ...]) -> Iterator[Value]:
    computation = call.callees[0]
    for number, name in enumerate(call.operand_names):
        if name == item.name and computation.has_parameter(number):
            yield frame.inside(call, computation), computation.parameter(number), path


def _out(frame: CallContext, path: tuple[int, ...]) -> Iterator[Value]:
    """From a computation's root to the result of its call; of a loop body also to its next iteration."""
    call, outer = frame.call, frame.outer
    if call is None or outer is None:
        return
    if call.opcode == "while":
        if frame.in_body:
            yield from _into_loop(outer, call, path)
            yield outer, call, path
    else:
        yield outer, call, (1, *path) if call.opcode.endswith("-start") else path


def levels(starts: Iterable[Value], step: Step, *, most: int | None = None) -> Iterator[list[Value]]:
    """Breadth first, each value once: the starts, then what is one step further, and so on, up to about `most`."""
    level = list(dict.fromkeys(starts))
    seen = set(level)
    while level and (most is None or len(seen) < most):
        yield level
        following = dict.fromkeys(neighbour for value in level for neighbour in step(value) or ())
        level = [value for value in following if value not in seen]
        seen.update(level)


def walk(starts: Iterable[Value], step: Step) -> Iterator[Value]:
    """The same without an end, value by value."""
    return chain.from_iterable(levels(starts, step))


def leads_to(start: Value, is_goal: Callable[[Value], bool], step: Step, known: dict[Value, bool]) -> bool:
    """Whether a goal is among what `step` leads to from `start`.

    Depth first, with a cache: a path found holds for all on it, a failed search for all that it visited.
    """
    came_from: dict[Value, Value | None] = {start: None}
    todo = [start]
    while todo:
        value = todo.pop()
        if known.get(value) or is_goal(value):
            at: Value | None = value
            while at is not None:
                known[at] = True
                at = came_from[at]
            return True
        if value in known:
            continue
        for neighbour in step(value) or ():
            if neighbour not in came_from:
                came_from[neighbour] = value
                todo.append(neighbour)
    known.update(dict.fromkeys(came_from, False))
    return False
