"""How a compile ends badly: refused before it began, or given up by libtpu."""

import re
from dataclasses import dataclass

_HBM = (
    re.compile(r"\((?P<needed>[\d.]+[KMGT]?)\) exceeds available HBM \((?P<there>[\d.]+[KMGT]?)\)"),
    re.compile(r"Used (?P<needed>[\d.]+[KMGT]?) of (?P<there>[\d.]+[KMGT]?) hbm"),
    re.compile(r"(?P<needed>[\d.]+[KMGT]) exceeds (?P<there>[\d.]+[KMGT])"),
)
_UNIT = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class WorkerError(ValueError):
    """A compile that gave no program; the message is one line."""

    exit_status = 1


class RefusedError(WorkerError):
    """The request can't be met: what was read, and what would be right."""

    exit_status = 2


class NotOfferedError(RefusedError):
    """The program has no form that this partitioner reads: no failure where it is a control."""

    def __init__(self, why: str):
        super().__init__(f"not offered: {why}")


class CompileError(WorkerError):
    """libtpu failed to compile the program.  Where it does not fit in HBM, the sizes are given in bytes."""

    def __init__(self, reason: str):
        self.size = _size(reason)
        """Where the program is larger than HBM."""
        in_bytes = f"does not fit in HBM: {self.size.words}" if self.size else ""
        super().__init__(in_bytes or "libtpu could not compile it: " + " ".join(reason.split())[:500])


@dataclass(frozen=True, slots=True)
class Size:
    """What one device needs of its memory, and what it has; libtpu rounds its figures to 0.01 of their unit."""

    needed: str
    available: str
    """As libtpu writes them: `18.73G`."""

    @property
    def needed_bytes(self) -> int:
        return _bytes(self.needed)

    @property
    def available_bytes(self) -> int:
        return _bytes(self.available)

    @property
    def words(self) -> str:
        needed, available = f"{self.needed_bytes:,}", f"{self.available_bytes:,}"
        return f"one device needs {needed} bytes ({self.needed}iB) and has {available} bytes ({self.available}iB)"


def _size(reason: str) -> Size | None:
    """The figures of `RESOURCE_EXHAUSTED`; None of any other reason."""
    if not reason.startswith("RESOURCE_EXHAUSTED"):
        return None
    matches = (pattern.search(reason) for pattern in _HBM)
    return next((Size(*match.group("needed", "there")) for match in matches if match), None)


def _bytes(text: str) -> int:
    unit = text[-1] if text[-1] in _UNIT else ""
    return round(float(text.removesuffix(unit)) * _UNIT[unit])
