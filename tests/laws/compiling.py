"""Many lowered programs through one compiler, in one process: `python -m tests.laws.compiling tpu|cpu FOLDER…`.

Each folder has what an arm's `lower` wrote, and gets optimized.hlo.gz.
"""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compare.compile import compiler
from meshes.assignment import assign_chips
from meshes.case import Case
from tests.laws.workers import each

TOPOLOGY = "v5e:2x4"


def for_tpu() -> Callable[[Path], str]:
    """libtpu, ahead of time: no TPU is needed."""
    compiler.start()
    devices = compiler.list_devices(TOPOLOGY)

    def text(folder: Path) -> str:
        case = Case.from_json((folder / "case.json").read_text())
        ordered = compiler.order_devices(devices, assign_chips(case.plan))
        options = compiler.build_options(_asked(folder), ordered)
        return _text(compiler.compile_module(_module(folder), ordered=ordered, options=options))

    return text


def for_cpu() -> Callable[[Path], str]:
    """XLA's CPU compiler, of the same program."""
    from jaxlib import xla_client

    client = xla_client.make_cpu_client(num_devices=8)
    devices = list(client.devices())

    def text(folder: Path) -> str:
        options = compiler.build_options(_asked(folder), devices)
        return _text(client.compile_and_load(_module(folder), xla_client.DeviceList(tuple(devices)), options))

    return text


def _asked(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "about.json").read_text())["compile_options"]


def _module(folder: Path) -> Any:
    return compiler.parse_stablehlo((folder / "program.mlirbc").read_bytes())


def _text(executable: Any) -> str:
    (hlo,) = executable.hlo_modules()
    return hlo.to_string()


if __name__ == "__main__":
    backend, *folders = sys.argv[1:]
    compiled = {"tpu": for_tpu, "cpu": for_cpu}[backend]()
    each(folders, lambda folder: (folder / "optimized.hlo.gz").write_bytes(gzip.compress(compiled(folder).encode(), 3)))
