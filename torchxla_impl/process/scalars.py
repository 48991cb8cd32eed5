"""Scalar tensors that PyTorch/XLA compiles as constants, without a word: told apart from numbers in the source.

In the graph both are a constant.  So tensors of no dims are remembered as they come to the device, with their value and
the line; of those, the graph of a program then shows which it uses as constants.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch_xla
from torch import Tensor
from torch.overrides import TorchFunctionMode

MOST_LISTED = 8
_NODE = re.compile(r"%(\d+) = .+? ([\w:]+)\(([^)]*)\)(?:.*ROOT=(\d+))?")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/|^<|/lib/python\d[\d.]*/")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A tensor of no dims that came to the device."""

    tensor: Tensor
    description: str
    """Its value and the line that moved it."""


class _Watch(TorchFunctionMode):
    """Remembers each."""

    def __init__(self) -> None:
        super().__init__()
        self.scalars: list[Scalar] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.dim() == 0 and result.device.type == "xla":
            arguments = [*args, *(kwargs or {}).values()]
            if not any(isinstance(each, Tensor) and each.device.type == "xla" for each in arguments):
                self.scalars.append(Scalar(result, f"{_value(arguments)} ({_line()})"))
        return result


# Its frame is around every operation, and no line of anybody's model: `<…>` is no file to those who read frames.
_Watch.__torch_function__.__code__ = _Watch.__torch_function__.__code__.replace(co_filename="<wirediff>")

_watch = _Watch()


def watch() -> None:
    """Remember them from now on."""
    if not _watch.scalars and _watch not in _active():
        _watch.__enter__()


def notes(outputs: Sequence[Tensor]) -> tuple[str, ...]:
    """What to say of the graph of these tensors."""
    baked = constants(outputs, _watch.scalars)
    if not baked:
        return ()
    listed = ", ".join(each.description for each in baked[:MOST_LISTED]) + ", …" * (len(baked) > MOST_LISTED)
    what = (
        "1 scalar tensor was compiled as a constant"
        if len(baked) == 1
        else (f"{len(baked)} scalar tensors were compiled as constants")
    )
    return (
        f"{what}: {listed}; with an argument there the program may communicate more (a tensor of shape [1] is one)",
    )


def constants(outputs: Sequence[Tensor], scalars: Sequence[Scalar]) -> list[Scalar]:
    """Those of the scalars that are a constant in the graph of the outputs."""
    text = torch_xla._XLAC._get_xla_tensors_text([*outputs, *(each.tensor for each in scalars)]) if scalars else ""
    operands: dict[int, list[int]] = {}
    roots: dict[int, int] = {}
    kinds: dict[int, str] = {}
    for number, kind, handed, root in _NODE.findall(text):
        kinds[int(number)] = kind
        operands[int(number)] = [int(each) for each in re.findall(r"%(\d+)", handed)]
        if root:
            roots[int(root)] = int(number)
    used = set(_reached([roots[at] for at in range(len(outputs)) if at in roots], operands))
    places = ((each, roots.get(len(outputs) + at)) for at, each in enumerate(scalars))
    return [each for each, node in places if node in used and kinds[node] == "prim::Constant"]


def _reached(begin: Sequence[int], operands: Mapping[int, Sequence[int]]) -> Iterator[int]:
    todo, seen = list(begin), set(begin)
    while todo:
        node = todo.pop()
        yield node
        fresh = [each for each in operands[node] if each not in seen]
        seen.update(fresh)
        todo += fresh


def _active() -> Sequence[TorchFunctionMode]:
    return [torch.overrides._get_current_function_mode()] if torch.overrides._len_torch_function_stack() else []


def _value(arguments: Sequence[Any]) -> str:
    """Of the scalar that was moved: a number, or a host tensor of no dims."""
    for each in arguments:
        if isinstance(each, Tensor) and each.dim() == 0 and each.device.type == "cpu":
            return str(each.item())
        if isinstance(each, int | float | complex):
            return str(each)
    return "?"


def _line() -> str:
    """The innermost line that is neither ours nor an installed package's."""
    frame = sys._getframe(2)
    while frame.f_back and (frame.f_code.co_filename == __file__ or _INSTALLED.search(frame.f_code.co_filename)):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
