"""Compile anybody's program without a TPU: `python -m compare.compile.workers.compile_any REQUEST.json OUTDIR`.

The program is StableHLO (text or bytecode), or HLO from before the partitioner (text or protocol buffer).  REQUEST
holds `program` (its path), `topology` (`v5e:2x4`; empty: the smallest v5e slice that it fills), `num_devices` (0: as
many as the program says), and a `remedy` to write into it first, or null.  How it is compiled it says itself: which
partitioner it was written for, which arguments and results have no sharding, so that the compiler may choose one, as
`jit` and PyTorch/XLA have it.  Writes, exits and dies as `compare.compile.workers.compile_request` does, and writes the
`meshes` that the program names, too, the shardings that the compiler has `chosen` for results without one, and
before.hlo.gz, the program before the partitioner.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import TypedDict

from compare.compile.errors import RefusedError
from compare.compile.requests import CompileRequest, Remedy
from compare.compile.workers import compile_request
from compare.compile.workers.worker import read_request, serve, write
from meshes.devices.topology import Topology
from meshes.process.errors import MeshError
from meshes.process.last_word import claim_stderr

FIELDS = frozenset({"program", "topology", "num_devices", "remedy"})


class Fields(TypedDict):
    """The request."""

    program: str
    topology: str
    num_devices: int
    remedy: Remedy | None


def handle_request(request: Path, out: Path) -> None:
    """Convert it to StableHLO bytecode, read off it how it is to be compiled, and compile it."""
    fields: Fields = read_request(request, fields=FIELDS)
    from compare.compile import executable_info, to_stablehlo

    converted = to_stablehlo.convert_to_stablehlo(Path(fields["program"]).read_bytes(), fields["remedy"])
    topology = _topology(fields, num_devices=converted.num_devices)
    (out / "program.mlirbc").write_bytes(converted.bytecode)
    request_fields: CompileRequest = {
        "program": str(out / "program.mlirbc"),
        "topology": topology.slice_name,
        "num_slices": topology.slices,
        "places": topology.places(),
        "compile_options": converted.compile_options(topology.num_devices),
        "strip": [],
        "passes": True,
    }
    executable = compile_request.compile_request(request_fields, out)
    before = to_stablehlo.write_hlo(converted.bytecode)
    (out / "before.hlo.gz").write_bytes(gzip.compress(before.encode(), compresslevel=6, mtime=0))
    about = json.loads((out / "compiled.json").read_bytes())
    chosen = executable_info.list_chosen_shardings(executable, is_open=converted.open_outputs)
    write(out / "compiled.json", about | {"meshes": converted.meshes, "chosen": chosen})


def _topology(fields: Fields, *, num_devices: int) -> Topology:
    """The requested topology, or the smallest that the program fills."""
    requested = fields["num_devices"]
    if requested and num_devices and requested != num_devices:
        raise RefusedError(f"the axes make {requested} devices; the program is for {num_devices}")
    try:
        if fields["topology"]:
            topology = Topology.parse(fields["topology"])
        elif requested or num_devices:
            topology = Topology.smallest(requested or num_devices)
        else:
            raise RefusedError("the program does not say for how many devices it is; name the axes, or a topology")
    except MeshError as error:
        raise RefusedError(str(error)) from error
    wanted = requested or num_devices
    if wanted and wanted != topology.num_devices:
        raise RefusedError(f"{topology.name} has {topology.num_devices} devices; the program is for {wanted}")
    return topology


def format_request(program: Path, *, topology: str, num_devices: int, remedy: Remedy | None = None) -> str:
    """The text of this worker's request file."""
    fields: Fields = {"program": str(program), "topology": topology, "num_devices": num_devices, "remedy": remedy}
    return json.dumps(fields)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(
        serve(handle_request, sys.argv[1:], module="compare.compile.workers.compile_any", needs="the TPU compiler")
    )
