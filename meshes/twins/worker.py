"""The worker protocol of a twin: its arguments, the stages it reports, and its exit status."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from meshes.case import Case
from meshes.process.command_line import REFUSED, stoppable
from meshes.process.documents import read_json
from meshes.process.errors import MeshError, NotOfferedError
from meshes.process.last_word import NOT_OFFERED, give_reason, refuse

WARMUP_STEPS = 2
"""Run before a profile is recorded."""
STEPS = 5
"""Recorded in a profile."""


@dataclass(slots=True)
class Stages:
    """Seconds of each stage; each is reported on stdout as it begins, one JSON object a line."""

    _start: float = field(default_factory=monotonic)
    _begun: dict[str, float] = field(default_factory=dict)

    def begin(self, stage: str) -> None:
        self._begun[stage] = monotonic() - self._start
        print(json.dumps({"stage": stage, "seconds": round(self._begun[stage], 3)}), flush=True)

    def seconds(self) -> dict[str, float]:
        ends = [*list(self._begun.values())[1:], monotonic() - self._start]
        return {name: round(end - begun, 3) for (name, begun), end in zip(self._begun.items(), ends, strict=True)}


def serve(work: Callable[..., None], argv: list[str], *, usage: str, framework: str) -> int:
    """Run `work(case, out, …)` with the arguments that `usage` names after the module; returns the exit status.

    0: done; 1: failed; 2: the request cannot be met.  The last line on stderr says why; that the framework does not
    offer what the case asks for is also a JSON object on stdout, `{"reason": "not offered"}`.

    framework: its name in the message about a missing package.
    """
    if len(argv) != len(usage.split()[3:]):
        refuse(f"usage: {usage}")
        return REFUSED
    path, out, *rest = argv
    try:
        case = Case.from_dict(read_json(Path(path)))
    except (OSError, MeshError) as error:
        refuse(f"cannot read the case {path}: {error}")
        return REFUSED
    try:
        with stoppable():
            work(case, Path(out), *rest)
    except MeshError as error:
        if isinstance(error, NotOfferedError):
            give_reason(NOT_OFFERED)
        refuse(error)
        return REFUSED
    except ImportError as error:
        refuse(f"{framework} can't be imported: {error}")
        return REFUSED
    except OSError as error:
        refuse(f"cannot write to {out}: {error.strerror or error}")
        return 1
    return 0


def write_about(out: Path, about: Mapping[str, Any]) -> None:
    """Write OUT/about.json, one line a key."""
    rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in about.items())
    (out / "about.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
