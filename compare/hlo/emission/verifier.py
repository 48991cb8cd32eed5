"""Whether a collective has the attributes of its kind, and results that fit its operands.

XLA's parser refuses attributes of another kind, and so must we: a collective whose groups are misspelled is one over
all devices.  Shapes are left to XLA's verifier (hlo_verifier.cc), whose rules these are: a text that was edited or
damaged gives bytes that nobody sends.
"""

from collections.abc import Sequence
from math import ceil

from compare.hlo.devices.groups import Groups
from compare.hlo.text.attributes import split_top
from compare.hlo.text.computation_spans import short
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array, Shape, arrays, read_shape

_DIM_KEY = "dimensions"
_OWN = {
    "all-reduce": ("replica_groups", "to_apply"),
    "all-gather": ("replica_groups", "dimensions"),
    "reduce-scatter": ("replica_groups", "dimensions", "to_apply"),
    "all-to-all": ("replica_groups", "dimensions"),
    "ragged-all-to-all": ("replica_groups", "dimensions"),
    "collective-broadcast": ("replica_groups",),
    "collective-permute": ("source_target_pairs",),
}
"""What says what a kind does; who takes part stands first."""
_GLOBAL = "use_global_device_ids"
_OF_SOME = frozenset(name for names in _OWN.values() for name in names)
_OF_ANY = frozenset({
    "async_execution_thread", "backend_config", "calls", "channel_id", "constrain_layout", "control-predecessors",
    "frontend_attributes", "metadata", "mode", "origin", "original_value", "output_to_operand_aliasing",
    "parameter_replication", "sharding", "slice_sizes", "split_dimension", "statistics", _GLOBAL,
})  # fmt: skip


def check_attributes(item: Instruction) -> None:
    """Raise `HloError` for an attribute of another kind, and for an unknown one where the groups are missing.

    An unknown one beside its groups is read over: a later XLA may have it.
    """
    kind = item.opcode.removesuffix("-start")
    own = _OWN.get(kind, ())
    if not own:
        return
    names = item.attributes.keys()
    if foreign := sorted((names & _OF_SOME).difference(own)):
        raise item.error(f"{kind} has no {foreign[0]}")
    if item.attributes.get(_GLOBAL, "true") not in ("true", "false"):
        raise item.error(f"{_GLOBAL} is true or false, not {item.attributes[_GLOBAL][:60]!r}")
    if item.attributes.get(_GLOBAL) == "true" and "channel_id" not in names:
        raise item.error(f"{_GLOBAL} without channel_id")
    unknown = sorted(names - _OF_SOME - _OF_ANY)
    if own[0] not in names and unknown:
        raise item.error(f"no {own[0]}, and {unknown[0][:60]!r}, which is not known")


def check_shapes(item: Instruction, groups: Groups, *, is_counted: bool) -> None:
    """Raise `HloError` where a result doesn't fit its operand.

    is_counted: whether the text gives replicas and partitions, without which only global ids say how large groups are.
    What has no results of its own (a send), and a permute in place, which moves windows, are not looked at.
    """
    _check_declared(item)
    kind = item.opcode.removesuffix("-start")
    operands, results = _operands(item), _results(item, kind)
    if kind == "ragged-all-to-all":
        operands = operands[1:2]
    elif "slice_sizes" in item.attributes or not operands or not results:
        return
    if len(operands) != len(results):
        raise item.error(f"its {len(operands)} operands and {len(results)} results are not one to one")
    split = _split_dim(item, kind, operands)
    is_known = is_counted or item.attributes.get("use_global_device_ids") == "true"
    sizes = {len(group) for group in groups if is_known} or {1}
    for operand, result in zip(operands, results, strict=True):
        if operand.dtype != result.dtype and not (_is_float(operand) and _is_float(result)):
            raise item.error(f"its operand is {operand.dtype} and its result {result.dtype}")
        if not any(_fits(operand.dims, result.dims, kind=kind, split=split, size=size) for size in sizes):
            raise item.error(
                f"its result {_dims(result)} does not fit its operand {_dims(operand)} in groups of "
                f"{' and '.join(map(str, sorted(sizes)))}"
            )


def _check_declared(item: Instruction) -> None:
    """Where a text says the shape of an operand, it is the operand's own."""
    words = split_top(item.arguments)
    for word, operand in zip(words, item.operands, strict=len(words) == len(item.operands)):
        declared = word.rpartition(" ")[0]
        try:
            is_own = not declared or _without_layout(read_shape(declared)) == _without_layout(operand.shape)
        except HloError as error:
            raise item.error(str(error)) from None
        if not is_own:
            raise item.error(f"its operand {operand.name!r} is {short(operand.shape_text)}, not {short(declared)}")


def _without_layout(shape: Shape) -> object:
    return (shape.dtype, shape.dims) if isinstance(shape, Array) else tuple(map(_without_layout, shape))


def _operands(item: Instruction) -> list[Array]:
    """Of each operand its arrays; none where one is not in the text."""
    shapes = [operand.shape for operand in item.operands]
    if len(shapes) != len(split_top(item.arguments)):
        return []
    return [array for shape in shapes for array in arrays(shape)]


def _results(item: Instruction, kind: str) -> list[Array]:
    """Of a start that keeps its operands in its tuple, the second part; of another its whole shape."""
    shape = item.shape
    if item.opcode.endswith("-start") and not isinstance(shape, Array) and len(shape) > 1:
        # The start of a TPU's all-reduce has its results alone.
        keeps_operands = not isinstance(shape[0], Array) or len(shape) == 2 * len(item.operands)
        shape = shape[1] if keeps_operands or kind != "all-reduce" else shape
    return arrays(shape)


def _split_dim(item: Instruction, kind: str, operands: Sequence[Array]) -> int | None:
    """The dim along which it gathers or scatters; of an all-to-all, along which it splits one array."""
    if kind not in ("all-gather", "reduce-scatter", "all-to-all") or _DIM_KEY not in item.attributes:
        return None
    text = item.attributes[_DIM_KEY].strip("{} ")
    if not (text.isascii() and text.isdigit()) or any(int(text[:9]) >= len(operand.dims) for operand in operands):
        raise item.error(f"dimensions={{{text[:20]}}} is no dim of its operand")
    return int(text)


def _fits(operand: tuple[int, ...], result: tuple[int, ...], *, kind: str, split: int | None, size: int) -> bool:
    if len(operand) != len(result):
        return False
    if kind in ("all-gather", "reduce-scatter"):
        small, large = (operand, result) if kind == "all-gather" else (result, operand)
        dims = range(len(small)) if split is None else [split]
        return any(_is_divided(small, large, dim=dim, size=size) for dim in dims)
    return operand == result


def _is_divided(small: tuple[int, ...], large: tuple[int, ...], *, dim: int, size: int) -> bool:
    """As XLA: the last part may be padded; groups of one are also those of a text without a number of devices."""
    others = all(a == b for at, (a, b) in enumerate(zip(small, large, strict=True)) if at != dim)
    return others and (size == 1 or ceil(large[dim] / max(small[dim], 1)) == size or small[dim] == large[dim] == 0)


def _is_float(array: Array) -> bool:
    """XLA's verifier lets a compiler choose the precision of a result; libtpu writes a sum of f32 as bf16."""
    return array.dtype.startswith(("f", "bf"))


def _dims(array: Array) -> str:
    return f"{array.dtype}[{','.join(map(str, array.dims))}]"
