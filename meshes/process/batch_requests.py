"""The batch protocol of patterns: one process of an arm lowers many small programs, and a failure stays its own.

REQUEST holds `programs`: each with `pattern`, `partitioner`, `axes` (name -> size) and `arrays` (name -> `shape` and
`dtype`).
Number n gets OUT/n/program.mlirbc and about.json, or failed.txt with one line.
"""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from meshes.process.documents import read_json
from meshes.process.last_word import refuse
from meshes.process.one_line import one_line

CHAPTERS = "moves matmuls pieces lookups attention shapes streams blocks partitioner caches weights".split()  # noqa: SIM905
"""The files of an arm that hold patterns."""


def serve(
    lower: Callable[[Mapping[str, Any], Path], None],
    argv: list[str],
    *,
    package: str,
    framework: str,
    begin: Callable[[int], object] = lambda num_devices: None,
) -> int:
    """Run `lower(program, out)` for each program of REQUEST; returns the exit status.

    `argv` is REQUEST and OUT; `begin` gets the number of devices of the largest mesh, before `package` is imported.
    One JSON line on stdout for each program.  0; 2: the request cannot be met, and the last line on stderr says why.
    """
    if len(argv) != 2:
        refuse(f"usage: python -m {package} REQUEST.json OUTDIR")
        return 2
    try:
        programs = read_json(Path(argv[0]))["programs"]
        names = [each["pattern"] for each in programs]
        num_devices = max((prod(each["axes"].values()) for each in programs), default=1)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        refuse(f"cannot read the request {argv[0]}: {error!r}")
        return 2
    try:
        begin(num_devices)
        for chapter in CHAPTERS:
            import_module(f"{package}.{chapter}")
    except ImportError as error:
        refuse(f"{framework} can't be imported: {error}")
        return 2
    for number, (name, program) in enumerate(zip(names, programs, strict=True)):
        print(json.dumps({"stage": name}), flush=True)
        out = Path(argv[1]) / str(number)
        out.mkdir(parents=True, exist_ok=True)
        try:
            lower(program, out)
        # Not narrower: a pattern's own code and the framework's tracer raise errors that share no base.  Seen of bad
        # shapes and meshes: JAX's TypeError, IndivisibleError, ValueError; RuntimeError and AssertionError of PyTorch;
        # KeyError of an unknown pattern.  One bad program must not stop those after it; its line names the type.
        except Exception as error:
            line = one_line(f"{type(error).__name__}: {error}")
            (out / "failed.txt").write_text(line + "\n", encoding="utf-8")
    return 0


def write(out: Path, *, program: bytes, about: Mapping[str, Any]) -> None:
    """One program, and what is known about it."""
    (out / "program.mlirbc").write_bytes(program)
    (out / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
