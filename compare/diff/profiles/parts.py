"""The parts of an execution that two profiles are compared by."""

STEP, COMPUTE, COPIES, EXPOSED, IDLE = "step", "compute", "copies", "exposed", "idle"
PARTS = (COMPUTE, COPIES, EXPOSED, IDLE)
"""Of an execution: they add up to it."""
Pair = tuple[int | float | None, ...]
"""(of A, of B); `None` where unknown, or where only the other has it."""
HELP = (
    "of two profiles: exit 1 if B is slower than A by more, e.g. 'step > 5 %%' or 'jit_step.exposed > 1 ms'; repeatable"
)
