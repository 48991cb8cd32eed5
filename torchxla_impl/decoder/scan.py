"""`torch_xla`'s scan, and what it forgets: the source lines of its body."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch_xla
from torch.utils import _pytree as tree
from torch_xla.experimental.scan import _scan_impl_pytree

_bodies: ContextVar[list[bytes] | None] = ContextVar("bodies", default=None)


def scan(run: Callable[..., Any], carry: Any, along: Any) -> Any:
    """The forward half of `torch_xla.experimental.scan`, as a `while` of the program.

    Its public half, AOTAutograd, decomposes einsum and takes no integer carries.
    """
    return _scan_impl_pytree(run if _bodies.get() is None else _recording(run), carry, along)


@contextmanager
def record_bodies() -> Iterator[list[bytes]]:
    """The HLO of each body that is traced in here, inner loops first, with the lines that it came from.

    The program's own copy has numbers of stack frames, and not the table that they stand for.
    """
    bodies: list[bytes] = []
    token = _bodies.set(bodies)
    try:
        yield bodies
    finally:
        _bodies.reset(token)


def _recording(run: Callable[..., Any]) -> Callable[..., Any]:
    def traced(carry: Any, at: Any) -> Any:
        results = run(carry, at)
        context = torch_xla._XLAC.lowering.LoweringContext("body")
        context.build(tree.tree_leaves(results))
        bodies = _bodies.get()
        assert bodies is not None
        bodies.append(context.hlo())
        return results

    return traced
