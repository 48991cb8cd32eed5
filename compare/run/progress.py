"""Progress of a run: a live table on a terminal, else a line for each change."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from compare.report.programs import NOT_OFFERED
from compare.run.results import NOT_INSTALLED, Event
from meshes.process.one_line import one_line

Cell = tuple[str, str, str]
"""Arm, phase, cell."""

REFRESH_S = 0.2
STYLES = {
    "done": "green",
    "cached": "green",
    "failed": "red",
    "refused": "red",
    "crashed": "red",
    "timeout": "red",
    NOT_OFFERED: "dim",
}


@contextmanager
def show_events(console: Console) -> Iterator[Callable[[Event], None]]:
    """Yields the function to call with each event.

    The display refreshes without a thread, since workers are forked off this process.
    """
    if not console.is_terminal:
        yield _Lines(console).update
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _Board(live).update


@contextmanager
def show_compiles(console: Console) -> Iterator[Callable[[str, str, float], None]]:
    """Yields the function to call with name, stage and seconds of programs being compiled."""
    rows: dict[str, tuple[str, float]] = {}
    with ExitStack() as shown:
        live: list[Live] = []

        def update(name: str, stage: str, seconds: float) -> None:
            name = one_line(name)  # a file name may contain anything
            is_new = name not in rows
            rows[name] = stage, seconds
            if not console.is_terminal:
                if is_new:
                    console.print(Text(f"compiling {name} …"), soft_wrap=True)
                return
            if not live:
                live.append(shown.enter_context(Live(console=console, auto_refresh=False, transient=True)))
            lines = (
                f"compiling {row_name}: {row_stage or 'start'}, {passed:.1f} s"
                for row_name, (row_stage, passed) in rows.items()
            )
            live[0].update(Text("\n".join(lines)), refresh=True)

        yield update


class _Lines:
    """One line for each change."""

    def __init__(self, console: Console):
        self._console = console
        self._last: dict[Cell, tuple[str, str]] = {}
        self._missing: set[str] = set()

    def update(self, event: Event) -> None:
        if event.stage == NOT_INSTALLED:
            # This concerns the full arm: once is enough.
            if event.arm not in self._missing:
                self._missing.add(event.arm)
                self._console.print(Text(f"{event.arm:<9} {one_line(event.error)}"), soft_wrap=True)
            return
        cell, step_and_stage = (event.arm, event.phase, event.cell), (event.step, event.stage)
        if self._last.get(cell) == step_and_stage:
            return
        self._last[cell] = step_and_stage
        line = f"{event.arm:<9} {event.phase:<8} {event.cell:<11} {_at(event)}"
        self._console.print(Text(line), soft_wrap=True)


class _Board:
    """A row for each cell, in order of its first event."""

    def __init__(self, live: Live):
        self._live = live
        self._rows: dict[Cell, Event] = {}
        self._begun, self._drawn = monotonic(), 0.0

    def update(self, event: Event) -> None:
        cell = (event.arm, event.phase, event.cell)
        previous = self._rows.get(cell)
        self._rows[cell] = event
        changed = not previous or (previous.step, previous.stage) != (event.step, event.stage)
        if changed or monotonic() - self._drawn > REFRESH_S:
            self._drawn = monotonic()
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, title=f"{monotonic() - self._begun:.0f} s", title_justify="left")
        for heading in ("arm", "phase", "cell", "step", "stage"):
            table.add_column(heading, no_wrap=True)
        table.add_column("seconds", justify="right", no_wrap=True)
        for (arm, phase, cell), event in self._rows.items():
            stage = Text(event.stage, style=STYLES.get(event.stage, ""))
            table.add_row(arm, phase, cell, event.step, stage, f"{event.seconds:.1f}")
        return table


def _at(event: Event) -> str:
    said = f"{event.step:<7} {event.stage:<8} {event.seconds:6.1f} s".strip()
    return f"{said}  {one_line(event.error)}" if event.error else said
