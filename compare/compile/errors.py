"""How a compile ends badly: refused before it began, or given up by libtpu."""

import re

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


class CompileError(WorkerError):
    """libtpu gave up on the program.  Larger than HBM is said in bytes."""

    def __init__(self, reason: str):
        super().__init__(_hbm(reason) or "libtpu could not compile it: " + " ".join(reason.split())[:500])


def _hbm(reason: str) -> str:
    """`RESOURCE_EXHAUSTED` as one line, or nothing.  libtpu's figures are rounded to 0.01 of their unit."""
    if not reason.startswith("RESOURCE_EXHAUSTED"):
        return ""
    for pattern in _HBM:
        if found := pattern.search(reason):
            needed, there = (f"{_bytes(size):,} bytes ({size}iB)" for size in found.groups())
            return f"does not fit in HBM: one device needs {needed} and has {there}"
    return ""


def _bytes(text: str) -> int:
    unit = text[-1] if text[-1] in _UNIT else ""
    return round(float(text.removesuffix(unit)) * _UNIT[unit])
