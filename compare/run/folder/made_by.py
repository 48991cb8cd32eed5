"""What made a run folder: the version of this project, its commit, and the day."""

import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compare.report.model.codec import JsonObject

MADE_BY = "made_by"
"""Key in case.json."""


def describe_maker(root: Path) -> JsonObject:
    """`wirediff`: the installed version; `wirediff_commit`: of the checkout at `root`; `date`, in UTC.

    None where unknown.  A commit with changes that are not committed ends in `-dirty`.
    """
    return {
        "wirediff": _version(), "wirediff_commit": read_commit(root), "date": datetime.now(UTC).date().isoformat()
    }  # fmt: skip


@cache
def read_commit(root: Path) -> str | None:
    """The commit of a checkout, in twelve letters; `None` where the folder is no checkout, or there is no git."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _version() -> str | None:
    try:
        return version("wirediff")
    except PackageNotFoundError:
        return None
