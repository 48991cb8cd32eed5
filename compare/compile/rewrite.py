"""Write an operation of a StableHLO program as a remedy has it, so that the program can be compiled with the remedy.

A remedy of an operation is a function of JAX: lowered on the program's mesh, it becomes a function of the program,
which is called in the operation's place.  A remedy of an argument changes how that is split.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy

from compare.compile.errors import RefusedError
from compare.compile.requests import Remedy

if TYPE_CHECKING:
    from jax import Array  # every program is compiled by way of this file, and few need JAX

_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\(?')
_AXIS = re.compile(r'"([^"]+)"=(\d+)')
_SPLIT = "sdy.sharding"
_TYPES: Mapping[str, str] = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "bf16": "bfloat16",
}


@dataclass(frozen=True, slots=True)
class _Mesh:
    """The program's mesh, and how the collectives' axes part a dim."""

    symbol: str
    sizes: Mapping[str, int]
    axes: tuple[str, ...]

    @property
    def parts(self) -> int:
        return prod(self.sizes[axis] for axis in self.axes)

    def pin(self, array: "Array", dims: Mapping[int, bool]) -> "Array":
        """Pin these dims, split over the axes (true) or whole; the others stay as the partitioner has them."""
        from jax.lax import with_sharding_constraint
        from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

        mesh = AbstractMesh(tuple(self.sizes.values()), tuple(self.sizes))
        words = [
            (self.axes if dims[dim] else None) if dim in dims else PartitionSpec.UNCONSTRAINED
            for dim in range(array.ndim)
        ]
        return with_sharding_constraint(array, NamedSharding(mesh, PartitionSpec(*words)))


_Function = Callable[["Array"], object]
_Found = tuple[_Function, Sequence[ir.Value]]
"""A function of JAX, and what it is called with."""


def apply(module: ir.Module, remedy: Remedy) -> None:
    """Change the program in place.  Raises `RefusedError` where it has no such operation, or cannot be written so."""
    mesh = _read_mesh(module, remedy["axes"])
    functions = {ir.StringAttr(each.attributes["sym_name"]).value: each for each in _functions(module)}
    main = functions.get("main") or next(iter(functions.values()))
    with module.context, ir.Location.unknown():
        if remedy["name"] in _ARGUMENTS:
            changed = [_ARGUMENTS[remedy["name"]](main, number, mesh) for number in remedy["parameters"]]
            if not any(changed):
                raise RefusedError("no argument of the program can be split so")
            return
        find = _OPERATIONS[remedy["name"]]
        names: dict[ir.Operation, list[str]] = {}
        for operation, name in _walk(main, functions):
            names.setdefault(operation, []).append(name)
        wanted = [each for each, paths in names.items() if all(_is_one_of(path, remedy["op_names"]) for path in paths)]
        changes = [(operation, found) for operation in wanted if (found := find(operation, mesh))]
        if not changes:
            raise RefusedError(f"the program has no operation that {remedy['name']} is a remedy of")
        for number, (operation, (function, operands)) in enumerate(changes):
            _replace(module, operation, function, operands, mesh, prefix=f"remedy{number}_")


def _read_mesh(module: ir.Module, axes: Sequence[str]) -> _Mesh:
    meshes = [each for each in module.body.operations if each.operation.name == "sdy.mesh"]
    if len(meshes) != 1:
        raise RefusedError(f"the program has {len(meshes)} meshes of Shardy; a remedy is written for one")
    sizes = {name: int(size) for name, size in _AXIS.findall(str(meshes[0].operation.attributes["mesh"]))}
    if unknown := set(axes) - set(sizes):
        raise RefusedError(f"the program's mesh has no axis {sorted(unknown)[0]}")
    return _Mesh(ir.StringAttr(meshes[0].operation.attributes["sym_name"]).value, sizes, tuple(axes))


def _functions(module: ir.Module) -> list[ir.Operation]:
    return [each.operation for each in module.body.operations if each.operation.name == "func.func"]


def _walk(
    inside: ir.Operation, functions: Mapping[str, ir.Operation], prefix: str = ""
) -> Iterator[tuple[ir.Operation, str]]:
    """Each operation with its path, as XLA makes it: that of the call, and in it the operation's own."""
    for operation in (each.operation for region in inside.regions for block in region for each in block):
        found = _NAME.match(str(operation.location))
        name = "/".join(filter(None, (prefix, found[1].rstrip(":") if found else "")))
        if operation.name == "func.call":
            callee = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
            yield from _walk(functions[callee], functions, name)
        else:
            yield operation, name
            yield from _walk(operation, functions, prefix)


def _is_one_of(path: str, op_names: Sequence[str]) -> bool:
    """Whether it begins as one of these, or one as it: XLA appends words to an operation's path, and drops some.

    Names without a path are the compiler's own (`reduce-window.3`, of a cumulative sum), and tell nothing.
    """
    return any("/" not in name or name.startswith(path) or path.startswith(name) for name in op_names if path)


def _replace(
    module: ir.Module,
    operation: ir.Operation,
    function: _Function,
    operands: Sequence[ir.Value],
    mesh: _Mesh,
    *,
    prefix: str,
) -> None:
    import jax

    shapes = [jax.ShapeDtypeStruct(tuple(type_.shape), _dtype(type_)) for type_ in (value.type for value in operands)]
    text = jax.jit(function).trace(*shapes).lower(lowering_platforms=("tpu",)).as_text()
    text = re.sub(r"@(\w+)", lambda name: f"@{mesh.symbol if name[1] == 'mesh' else prefix + name[1]}", text)
    written = ir.Module.parse(text, module.context)
    for each in _functions(written):
        each.attributes["sym_visibility"] = ir.StringAttr.get("private")
        each.clone(ip=ir.InsertionPoint(module.body))
    called = func.CallOp(
        [result.type for result in operation.results],
        ir.FlatSymbolRefAttr.get(f"{prefix}main"),
        list(operands),
        ip=ir.InsertionPoint(operation),
    )
    for old, new in zip(operation.results, called.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()


def _dtype(type_: ir.Type) -> str:
    word = str(type_.element_type)
    if word not in _TYPES:
        raise RefusedError(f"a tensor of {word}: a remedy is written for {', '.join(_TYPES)}")
    return _TYPES[word]


def _top_k(operation: ir.Operation, mesh: _Mesh) -> _Found | None:
    """The best of each part, of which the best are chosen."""
    if operation.name != "chlo.top_k":
        return None
    (x,), k = operation.operands, ir.IntegerAttr(operation.attributes["k"]).value
    width, parts = x.type.shape[-1], mesh.parts
    if width % parts or k > width // parts:
        return None

    def in_parts(x: "Array") -> tuple["Array", "Array"]:
        import jax.numpy as jnp
        from jax.lax import top_k

        last = x.ndim - 1
        split = mesh.pin(x.reshape(*x.shape[:-1], parts, width // parts), {last: True, last + 1: False})
        values, ids = top_k(split, k)
        ids = ids + (width // parts) * jnp.arange(parts, dtype=ids.dtype)[:, None]
        values, ids = (mesh.pin(each.reshape(*x.shape[:-1], parts * k), {last: False}) for each in (values, ids))
        best, places = top_k(values, k)
        return best, jnp.take_along_axis(ids, places, -1)

    return in_parts, [x]


def _cumulative_sum(operation: ir.Operation, mesh: _Mesh) -> _Found | None:
    """A sum within each part, to which the totals of those before are added."""
    if operation.name != "stablehlo.reduce_window" or len(operation.operands) != 2:
        return None
    body = [each.operation.name for region in operation.regions for block in region for each in block]
    x = operation.operands[0]
    shape = list(x.type.shape)
    window = list(ir.DenseI64ArrayAttr(operation.attributes["window_dimensions"]))
    padding = list(ir.DenseIntElementsAttr(operation.attributes["padding"]))
    along = [dim for dim, size in enumerate(window) if size > 1]
    if body != ["stablehlo.add", "stablehlo.return"] or len(along) != 1:
        return None
    (dim,) = along
    before = [shape[dim] - 1 if place == 2 * dim else 0 for place in range(2 * len(shape))]
    if window[dim] != shape[dim] or padding != before or shape[dim] % mesh.parts:
        return None

    def in_parts(x: "Array") -> "Array":
        import jax.numpy as jnp

        within = jnp.cumsum(x.reshape(*shape[:dim], mesh.parts, shape[dim] // mesh.parts, *shape[dim + 1 :]), dim + 1)
        totals = mesh.pin(jnp.take(within, -1, dim + 1), {dim: False})
        earlier = jnp.cumsum(totals, dim) - totals
        return (within + jnp.expand_dims(earlier, dim + 1)).reshape(shape)

    return in_parts, [x]


def _descending(operation: ir.Operation, mesh: _Mesh) -> _Found | None:
    """An ascending sort of the negated, in place of one that is reversed before and after."""
    if operation.name != "stablehlo.reverse" or not isinstance(operation.operands[0].owner, ir.Operation | ir.OpView):
        return None
    ordered = operation.operands[0].owner
    if ordered.name != "stablehlo.sort" or len(ordered.operands) != 2:
        return None
    reversed_ = ordered.operands[0].owner
    if not isinstance(reversed_, ir.Operation | ir.OpView) or reversed_.name != "stablehlo.reverse":
        return None
    places = ordered.operands[1].owner
    numbered = isinstance(places, ir.Operation | ir.OpView) and places.name == "stablehlo.reverse"
    if not numbered or places.operands[0].owner.name != "stablehlo.iota":
        return None
    (x,), dim = reversed_.operands, ir.IntegerAttr(ordered.attributes["dimension"]).value
    # Zero negated stays the smallest of unsigned integers.
    if ir.OpResult(operation.operands[0]).result_number != 1 or str(x.type.element_type).startswith("ui"):
        return None

    def negated(x: "Array") -> "Array":
        import jax.numpy as jnp

        return jnp.argsort(-x, dim).astype("int32")

    return negated, [x]


_OPERATIONS: Mapping[str, Callable[[ir.Operation, _Mesh], _Found | None]] = {
    "top-k": _top_k,
    "cumulative-sum": _cumulative_sum,
    "descending": _descending,
}


def _pin_whole(main: ir.Operation, number: int, mesh: _Mesh) -> bool:
    """Gather it once, before all uses."""
    argument = main.regions[0].blocks[0].arguments[number]
    rank = len(argument.type.shape)
    whole = sdy.TensorShardingAttr.get(mesh.symbol, [sdy.DimensionShardingAttr.get([], True)] * rank)
    pinned = sdy.ShardingConstraintOp(argument, whole, ip=ir.InsertionPoint.at_block_begin(main.regions[0].blocks[0]))
    argument.replace_all_uses_except(pinned.result, [pinned.operation])
    return True


def _split_layers(main: ir.Operation, number: int, mesh: _Mesh) -> bool:
    """Move the axes of the first dim, that of the layers, to the largest other that they divide and nothing splits."""
    rows = list(ir.ArrayAttr(main.attributes["arg_attrs"]))
    words = {each.name: each.attr for each in ir.DictAttr(rows[number])}
    if _SPLIT not in words:
        return False
    dims = list(sdy.TensorShardingAttr(words[_SPLIT]).dimension_shardings)
    is_split = [bool(sdy.DimensionShardingAttr(dim).axes) for dim in dims]
    shape = list(main.regions[0].blocks[0].arguments[number].type.shape)
    free = [dim for dim in range(1, len(dims)) if not is_split[dim] and shape[dim] % mesh.parts == 0]
    if not is_split[0] or not free:
        return False
    target = max(free, key=lambda dim: shape[dim])
    dims[0], dims[target] = dims[target], dims[0]
    words[_SPLIT] = sdy.TensorShardingAttr.get(mesh.symbol, dims)
    rows[number] = ir.DictAttr.get(words)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(rows)
    return True


_ARGUMENTS: Mapping[str, Callable[[ir.Operation, int, _Mesh], bool]] = {
    "pin-whole": _pin_whole,
    "split-layers": _split_layers,
}
REMEDIES = frozenset({*_OPERATIONS, *_ARGUMENTS})
