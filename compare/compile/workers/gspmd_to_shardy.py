"""Translate GSPMD shardings to Shardy: `python -m compare.compile.workers.gspmd_to_shardy REQUEST.json OUTDIR`.

Imports jaxlib, no framework.  REQUEST holds `program` (a folder with program.mlirbc and about.json) and `axes` (name ->
size, outermost first; devices are row-major).  Writes both files anew.  Exit 0;
2: Shardy has no form for one of these shardings.

libtpu accepts `use_shardy_partitioner` for a module without Shardy's attributes, and silently uses GSPMD.  Each
`@Sharding` custom call becomes an `sdy.sharding_constraint`, each sharding of a parameter or operation an
`sdy.sharding`, over one `sdy.mesh` of the axes; no other operation changes.
"""

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from compare.compile.errors import NotOfferedError, RefusedError
from compare.compile.workers.worker import Stages, read_request, serve, write
from compare.hlo.devices.tiles import list_axes, read_tiles
from compare.hlo.text.errors import HloError
from meshes.process.documents import read_json
from meshes.process.last_word import claim_stderr

FIELDS = frozenset({"program", "axes"})
MESH = "mesh"
PIN, MANUAL = "Sharding", ("SPMDFullToShardShape", "SPMDShardToFullShape")
OWN, THEIRS = "mhlo.sharding", "sdy.sharding"

_OPEN = re.compile(r"unspecified_dims=\[([\d,]*)\]")

Split = tuple[tuple[str, ...], ...]
"""For each dim the axes that split it, outermost first."""


def rewrite_annotations(module: ir.Module, *, axes: Mapping[str, int]) -> int:
    """Replace the module's GSPMD shardings with Shardy's, and return the number of pins.

    axes: of the mesh, outermost first, devices row-major.  `RefusedError` for a sharding that they cannot express.
    """
    with module.context, ir.Location.unknown():
        sizes = [sdy.MeshAxisAttr.get(name, size) for name, size in axes.items() if size > 1]
        sdy.MeshOp(MESH, sdy.MeshAttr.get(sizes), ip=ir.InsertionPoint.at_block_begin(module.body))
        pins = 0
        for operation in list(_operations(module.operation)):
            pins += _rewrite(operation, axes)
        for function in module.body.operations:
            if "arg_attrs" in function.attributes:
                kinds = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs
                rows = zip(function.attributes["arg_attrs"], kinds, strict=True)
                function.attributes["arg_attrs"] = ir.ArrayAttr.get([_parameter(*row, axes) for row in rows])
    return pins


def parse_sharding(sharding: str, *, rank: int, axes: Mapping[str, int]) -> Split:
    """The axes of a sharding in HLO's spelling: `{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}`.

    Raises `RefusedError` where no unsplit axes of this mesh give these tiles.
    """
    if sharding == "{replicated}":
        return ((),) * rank
    try:
        if read_tiles(sharding) is None:
            raise NotOfferedError(f"the sharding {sharding} has no form in Shardy; tiles and replicas have one")
        split = list_axes(sharding, axes=axes)
    except HloError as error:
        raise NotOfferedError(str(error)) from None
    if split is None or len(split) != rank:
        words = ",".join(f"{name}={size}" for name, size in axes.items())
        raise NotOfferedError(
            f"the sharding {sharding} of {rank} dims splits no whole axes of {words}; Shardy takes axes"
        )
    return split


def _rewrite(operation: ir.Operation, axes: Mapping[str, int]) -> int:
    """One operation; 1 where it was a pin."""
    if operation.name == "stablehlo.custom_call":
        target = ir.StringAttr(operation.attributes["call_target_name"]).value
        if target in MANUAL:
            raise NotOfferedError("collectives written by hand for GSPMD have no form that Shardy reads")
        if target == PIN:
            _pin(operation, axes)
            return 1
    if OWN in operation.attributes and len(operation.results) == 1:
        said = ir.StringAttr(operation.attributes[OWN]).value
        del operation.attributes[OWN]
        attribute = _attribute(said, operation.results[0].type, axes)
        operation.attributes[THEIRS] = sdy.TensorShardingPerValueAttr.get([attribute])
    return 0


def _pin(operation: ir.Operation, axes: Mapping[str, int]) -> None:
    said = ir.StringAttr(operation.attributes[OWN]).value
    config = operation.attributes.get("backend_config", None)
    open_dims = _OPEN.search(config.value) if isinstance(config, ir.StringAttr) else None
    left_open = {int(dim) for dim in open_dims[1].split(",") if dim} if open_dims else set()
    sharding = _attribute(said, operation.results[0].type, axes, left_open=left_open)
    with operation.location:
        constraint = sdy.ShardingConstraintOp(operation.operands[0], sharding, ip=ir.InsertionPoint(operation))
    operation.results[0].replace_all_uses_with(constraint.result)
    operation.erase()


def _parameter(row: ir.DictAttr, kind: ir.Type, axes: Mapping[str, int]) -> ir.DictAttr:
    """The attributes of a parameter."""
    said = {entry.name: entry.attr for entry in row}
    if OWN in said:
        said[THEIRS] = _attribute(ir.StringAttr(said.pop(OWN)).value, kind, axes)
    return ir.DictAttr.get(said)


def _attribute(
    words: str, kind: ir.Type, axes: Mapping[str, int], *, left_open: Sequence[int] | set[int] = ()
) -> sdy.TensorShardingAttr:
    return _sharding(parse_sharding(words, rank=ir.RankedTensorType(kind).rank, axes=axes), left_open=left_open)


def _sharding(split: Split, *, left_open: Sequence[int] | set[int] = ()) -> sdy.TensorShardingAttr:
    dims = [
        sdy.DimensionShardingAttr.get([sdy.AxisRefAttr.get(name) for name in names], is_closed=dim not in left_open)
        for dim, names in enumerate(split)
    ]
    return sdy.TensorShardingAttr.get(MESH, dims)


def _operations(outer: ir.Operation) -> Iterator[ir.Operation]:
    for region in outer.regions:
        for block in region.blocks:
            for each in block.operations:
                yield each.operation
                yield from _operations(each.operation)


def handle_request(request: Path, out: Path) -> None:
    """Read the request, translate its program, and write both files."""
    fields = read_request(request, fields=FIELDS)
    source = Path(fields["program"])
    try:
        program, about = (source / "program.mlirbc").read_bytes(), read_json(source / "about.json")
    except (OSError, ValueError) as error:
        raise RefusedError(f"cannot read the program in {source}: {error}") from error
    stages = Stages()
    stages.begin("import")
    from compare.compile import compiler

    stages.begin("rewrite")
    module = compiler.parse_stablehlo(program)
    pins = rewrite_annotations(module, axes=fields["axes"])
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    (out / "program.mlirbc").write_bytes(written.getvalue())
    options = about.get("compile_options") or {}
    about |= {
        "partitioner": "shardy",
        "compile_options": options | {"use_shardy_partitioner": True},
        "rewritten": {"from": about.get("partitioner"), "pins": pins},
    }
    write(out / "about.json", about)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(serve(handle_request, sys.argv[1:], module="compare.compile.workers.gspmd_to_shardy", needs="jaxlib"))
