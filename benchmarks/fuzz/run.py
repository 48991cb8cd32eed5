"""Run inputs one after another, and record outcomes and findings."""

import faulthandler
import random
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from benchmarks.fuzz.findings import Note, Wrong
from benchmarks.fuzz.readers import READERS, Reader
from meshes.process.log import set_level

MOST_SECONDS = 20
"""An input that takes longer hangs: the seeds take a hundredth."""
PROJECT = ("compare.", "meshes.", "docs.study.build.")
MOST_SAID = 500
MOST_MEMORY = 8 << 30
"""Bytes of address space of a process that reads; what needs more is a finding (`MemoryError`).

DuckDB alone may use 4 GiB, and each of its threads reserves a stack."""


class Hang(BaseException):
    """Raised by the alarm; no reader may catch it."""


@dataclass(slots=True)
class Outcomes:
    """What came of the inputs of one reader."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """`read`, `refused`, or a kind of finding: `traceback`, `hang`, `wrong`, `refusal`."""
    findings: dict[str, str] = field(default_factory=dict)
    """Finding -> the first input that shows it, by its number."""
    notes: Counter[str] = field(default_factory=Counter)
    """What readers say of inputs that they read."""
    seconds: float = 0.0

    def add(self, other: "Outcomes") -> None:
        self.outcomes.update(other.outcomes)
        self.notes.update(other.notes)
        self.seconds += other.seconds
        for what, where in other.findings.items():
            self.findings.setdefault(what, where)


def limit() -> None:
    """Bounds on this process: what takes more memory is a finding, and no end of the machine."""
    set_level("CRITICAL")  # what is said of each damaged input
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def chunk(at: int, numbers: range, seed: int) -> Outcomes:
    """The same, of the reader at this place in the list."""
    return try_inputs(READERS[at], numbers, seed=seed)


def try_inputs(reader: Reader, numbers: range, *, seed: int) -> Outcomes:
    """Make and read the inputs of these numbers.  Reader, seed and number determine an input."""
    outcomes = Outcomes()
    begun = time.monotonic()
    seeds = reader.seeds()
    signal.signal(signal.SIGALRM, _alarmed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            outcome, said = _one(reader, seeds[number % len(seeds)], Path(folder), f"{seed}/{reader.name}/{number}")
            outcomes.outcomes[outcome] += 1
            if outcome == "read" and said:
                outcomes.notes[said] += 1
            if outcome not in ("read", "refused"):
                outcomes.findings.setdefault(f"{outcome}: {said}", f"input {number}")
    outcomes.seconds = time.monotonic() - begun
    return outcomes


def _alarmed(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def _one(reader: Reader, given: object, folder: Path, key: str) -> tuple[str, str]:
    value = reader.make(given, random.Random(key))
    faulthandler.dump_traceback_later(6 * MOST_SECONDS, exit=True)  # where no signal gets through
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        read = reader.read(value, folder)
    except Wrong as wrong:
        return "wrong", str(wrong)
    except (ValueError, OSError) as error:
        return _refusal(error)
    except Hang as error:
        return "hang", _where(error)
    except Exception as error:
        return "traceback", f"{type(error).__name__} {_where(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    return "read", read.words if isinstance(read, Note) else ""


def _refusal(error: Exception) -> tuple[str, str]:
    """Whether an error is a refusal: one of the project's errors, or an `OSError` of a file, and one line."""
    if not type(error).__module__.startswith(PROJECT) and not isinstance(error, OSError):
        return "traceback", f"{type(error).__name__} {_where(error)}"
    said = str(error)
    if len(said) > MOST_SAID:
        return "refusal", f"of more than {MOST_SAID} characters {_where(error)}"
    if not said.isprintable():
        return "refusal", f"with control characters {_where(error)}"
    return ("refused", "") if said.strip() else ("refusal", f"without words {_where(error)}")


def _where(error: BaseException) -> str:
    """The innermost place in the project."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "benchmarks/fuzz" not in frame.filename]
    places = tuple(f"/{name.replace(chr(46), chr(47))}" for name in PROJECT)
    project_frames = [frame for frame in frames if any(place in frame.filename for place in places)]
    if not project_frames:
        return "nowhere in the project"
    last = project_frames[-1]
    return f"at {'/'.join(Path(last.filename).parts[-3:])}:{last.lineno} in {last.name}"
