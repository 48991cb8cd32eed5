"""What made a run folder: the version of this project, its commit, and the day."""

import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from compare.report.model.codec import JsonObject
from meshes.process.packages import installed_version

MADE_BY = "made_by"
"""Key in case.json."""


def describe_maker(root: Path) -> JsonObject:
    """`wirediff`: the installed version; `wirediff_commit`: of the checkout at `root`; `date`, in UTC.

    None where unknown.  A commit with changes that are not committed ends in `-dirty`.
    """
    installed, date = installed_version("wirediff") or None, datetime.now(UTC).date().isoformat()
    return {"wirediff": installed, "wirediff_commit": read_commit(root), "date": date}


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
