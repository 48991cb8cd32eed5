"""`python -m benchmarks.real DIR`: each profile and each program in a folder, what we say of it, in how many seconds.

A profile (`*.xplane.pb`, `*.trace.json`, gzipped or not) goes to `compare.trace`, text of HLO to `compare.hlo`, an
archive of modules is unpacked and each goes to the reader.  Nothing is known of the axes: they read `?`.  What is
refused has its one line; the exit status is 1 where something ends in a traceback.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read
from compare.render.terminal import console
from compare.render.units import count_text, percent_text, time_text
from meshes.process.one_line import plain

PROFILES = (".xplane.pb", ".xplane.pb.gz", ".trace.json", ".trace.json.gz")
PROGRAMS = (".hlo", ".hlo.gz", ".txt", ".hlo.txt")
ARCHIVES = (".tar.gz", ".tgz")
_LIMIT_S = 600
_WORDS = 160


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said of one file."""

    kind: str
    words: str
    seconds: float
    crashed: bool = False


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path)
    folder = parser.parse_args(argv).folder
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for heading in ("file", "what it is", "what we say"):
        table.add_column(heading, overflow="fold")
    table.add_column("seconds", justify="right")
    crashed = False
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        answer = ask(path)
        if answer is not None:
            crashed |= answer.crashed
            table.add_row(
                plain(str(path.relative_to(folder))), answer.kind, plain(answer.words), f"{answer.seconds:.1f}"
            )
    console().print(table)
    return int(crashed)


def ask(path: Path) -> Answer | None:
    """The answer to one file; `None` for one that is neither a profile nor a program."""
    begun = time.monotonic()
    if path.name.endswith(ARCHIVES):
        kind, words, crashed = _read_archive(path)
    elif path.name.endswith(PROFILES):
        kind, words, crashed = _command("compare.trace", path)
    elif path.name.endswith(PROGRAMS):
        kind, words, crashed = _command("compare.hlo", path)
    else:
        return None
    return Answer(kind, words, time.monotonic() - begun, crashed)


def _command(module: str, path: Path) -> tuple[str, str, bool]:
    command = [sys.executable, "-m", module, str(path), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return "?", f"no answer in {_LIMIT_S} s", True
    is_profile = module == "compare.trace"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no word"]
        crashed = len(lines) > 1 or done.returncode != 2
        reason = lines[-1].removeprefix("error: ").replace(str(path), path.name)
        words = f"{'TRACEBACK' if crashed else 'refused'}: {reason}"
        return ("profile" if is_profile else "program"), words[:_WORDS], crashed
    return (_profile_words if is_profile else _program_words)(json.loads(done.stdout))


def _profile_words(document: dict[str, Any]) -> tuple[str, str, bool]:
    """Where the time of a step goes, what dominates it, and what any of its programs communicates."""
    label = str(document["label"]).removeprefix("measured on ")
    times, programs = document["per_step"], document["programs"]
    step = times["step_ns"]
    parts = {
        "compute": times["compute_ns"],
        "waits for local copies": times.get("copy_wait_ns"),
        "exposed communication": times["exposed_ns"],
    }
    shares = [f"{percent_text(amount / step)} {name}" for name, amount in parts.items() if amount and step]
    words = [f"step {time_text(step)}: {', '.join(shares)}"]
    if programs and programs[0]["operations"]:
        longest = programs[0]["operations"][0]
        words.append(f"longest {longest['name']} × {longest['instructions']}, {time_text(longest['time_ns'])}")
    for program in programs:
        words += [
            f"{count_text(total['count'], kind)} in {program['program'].partition('(')[0]}, "
            f"{time_text(total['total_ns'])}"
            for kind, total in program["communication"].items()
        ]
    return f"profile of {label}, {count_text(len(programs), 'program')}", "; ".join(words), False


def _program_words(rows: list[dict[str, Any]]) -> tuple[str, str, bool]:
    kinds = Counter(str(row["kind"]) for row in rows)
    return "program", ", ".join(count_text(count, kind) for kind, count in kinds.items()) or "0 collectives", False


def _read_archive(path: Path) -> tuple[str, str, bool]:
    """Every module of an archive: how many are read, refused, or end in a traceback."""
    ends, refusals, crashes = Counter[str](), Counter[str](), list[str]()
    for name, text in _members(path):
        try:
            rows = collectives(read(text), {})
            ends["read"] += 1
            ends["collectives"] += len(rows)
        except HloError as error:
            ends["refused"] += 1
            refusals[" ".join(str(error).partition(": ")[2].split()[:6])] += 1
        except Exception as error:
            crashes.append(f"{name}: {type(error).__name__}")
    words = f"{ends['read']:,} read, with {ends['collectives']:,} collectives; {ends['refused']} refused"
    if refusals:
        words += " (" + "; ".join(f"{count} × {reason} …" for reason, count in refusals.most_common(4)) + ")"
    words += f"; TRACEBACK in {len(crashes)}: {', '.join(crashes[:3])}" if crashes else ""
    return (
        f"archive of {sum(ends[name] for name in ('read', 'refused')) + len(crashes):,} programs",
        words,
        bool(crashes),
    )


def _members(path: Path) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(path) as archive:
        archive.extractall(scratch, filter="data")
        for file in sorted(Path(scratch).rglob("*")):
            if file.is_file():
                data = file.read_bytes()
                yield file.name, (gzip.decompress(data) if file.suffix == ".gz" else data).decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
