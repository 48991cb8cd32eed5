"""The engines that can run the cases of a sweep, by name."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from compare.sweep.engines.local import CaseOutcome, CaseTask, Notify

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Runs tasks, `at_once` at a time (None: as many as it has room for), and yields each as it ends.

    scratch: a local folder for the run folders.  Closing the generator early kills the running tasks.
    """

    def __call__(
        self, tasks: Sequence["CaseTask"], /, *, at_once: int | None, scratch: "Path", notify: "Notify"
    ) -> Generator[tuple["CaseTask", "CaseOutcome"], None, None]: ...


def load_engine(name: str) -> Engine:
    """One of ENGINES; a command line is read without them."""
    if name == "local":
        from compare.sweep.engines.local import run_cases as run_here

        return run_here
    from compare.sweep.engines.ray import run_cases as run_on_cluster

    return run_on_cluster
