"""What the jaxlib workers share: reading requests, reporting stages, and exit statuses."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from compare.compile.errors import CompileError, NotOfferedError, RefusedError, WorkerError
from meshes.process.documents import read_json
from meshes.process.last_word import DOES_NOT_FIT, NOT_OFFERED, give_reason, refuse


class Stages:
    """Seconds of each stage; prints each on stdout as it begins."""

    def __init__(self) -> None:
        self._start = monotonic()
        self._begun: dict[str, float] = {}

    def begin(self, stage: str) -> None:
        self._begun[stage] = monotonic() - self._start
        print(json.dumps({"stage": stage, "seconds": round(self._begun[stage], 3)}), flush=True)

    def seconds(self) -> dict[str, float]:
        ends = [*list(self._begun.values())[1:], monotonic() - self._start]
        return {name: round(end - start, 3) for (name, start), end in zip(self._begun.items(), ends, strict=True)}


def read_request(path: Path, *, fields: frozenset[str]) -> Any:
    """The request, a dict, with none of these fields missing and nothing more; its `program` is a path."""
    try:
        request = read_json(path)
    except (OSError, ValueError) as error:
        raise RefusedError(f"cannot read the request {path}: {error}") from error
    if not isinstance(request, dict) or set(request) != fields or not isinstance(request["program"], str):
        raise RefusedError(f"the request {path} needs exactly the fields {', '.join(sorted(fields))}")
    return request


def serve(work: Callable[[Path, Path], None], argv: list[str], *, module: str, needs: str) -> int:
    """Do `work(request, out)`, and return the exit status.

    0; 1: it failed; 2: the request can't be met.  The last line on stderr says why; what the caller acts on is also
    sent as data (`give_reason`).  needs: what it imports.
    """
    if len(argv) != 2:
        refuse(f"usage: python -m {module} REQUEST.json OUTDIR")
        return 2
    try:
        work(Path(argv[0]), Path(argv[1]))
    except WorkerError as error:
        if isinstance(error, NotOfferedError):
            give_reason(NOT_OFFERED)
        elif isinstance(error, CompileError) and error.size:
            figures = {"needed_bytes": error.size.needed_bytes, "available_bytes": error.size.available_bytes}
            give_reason(DOES_NOT_FIT, **figures)
        refuse(error)
        return error.exit_status
    except ImportError as error:
        refuse(f"{needs} can't be imported: {error}")
        return 2
    except OSError as error:
        refuse(f"cannot write to {argv[1]}: {error.strerror or error}")
        return 1
    return 0


def write(path: Path, values: Mapping[str, object]) -> None:
    """Write a JSON object, one line for each key."""
    rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
