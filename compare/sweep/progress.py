"""The progress of a sweep: on a terminal a table of the running cases, else a line for each start and end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from compare.sweep.combination import Combination
from compare.sweep.engines.local import Notify
from meshes.process.log import is_quiet

REFRESH_S = 0.2
WAITS = ("waiting", "submitted")
"""Stages of a case that has not begun."""
WELL = ("done", "already done")
BADLY = ("failed", "crashed")
_MOST = 20
"""Rows of a terminal: those at work come first."""


@contextmanager
def show_progress(refused: Sequence[Combination] = (), *, console: Console | None = None) -> Iterator[Notify]:
    """Yield the function that receives progress.  Prints refused cases first, and at an interrupt the number done.

    No thread refreshes the display: workers are forked from this process.
    """
    console = console or Console(stderr=True, quiet=is_quiet())
    board = _Board()
    for combination in refused:
        console.print(Text(f"{combination.model} on {combination.mesh}: {combination.refused}"), soft_wrap=True)
    try:
        if not console.is_terminal:
            yield partial(_print_change, console, board)
            return
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield partial(_draw_board, live, board)
    except KeyboardInterrupt:
        console.print(Text(f"{board.count_text()}; run the same command again to continue"), soft_wrap=True)
        raise


class _Board:
    """Where each case is."""

    def __init__(self) -> None:
        self.cases: dict[str, tuple[str, float]] = {}
        self.said: set[str] = set()
        """Those of which a line says that they have begun."""
        self.drawn = 0.0
        self._begun = monotonic()

    def update(self, name: str, stage: str, seconds: float) -> bool:
        """Record a stage; returns whether it is a new one."""
        before = self.cases.get(name, ("", 0.0))[0]
        self.cases[name] = stage, seconds
        return before != stage

    def count_text(self) -> str:
        ended = [stage for stage, _ in self.cases.values() if stage in (*WELL, *BADLY)]
        bad = sum(stage in BADLY for stage in ended)
        failed = f", {bad} failed" if bad else ""
        return f"{len(ended) - bad} of {len(self.cases)} cases done{failed}, {monotonic() - self._begun:.0f} s"

    def over(self, name: str) -> bool:
        return self.cases[name][0] in (*WELL, *BADLY)

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("case", overflow="ellipsis", no_wrap=True)
        table.add_column("stage", no_wrap=True)
        table.add_column("seconds", justify="right", no_wrap=True)
        order = sorted(self.cases, key=lambda name: (self.over(name), self._waits(name)))
        for name in order[:_MOST]:
            stage, seconds = self.cases[name]
            style = "green" if stage in WELL else "red" if stage in BADLY else "dim" if self._waits(name) else ""
            table.add_row(name, Text(stage, style=style), f"{seconds:.1f}")
        return table

    def _waits(self, name: str) -> bool:
        return self.cases[name][0] in WAITS


def _print_change(console: Console, board: _Board, name: str, stage: str, seconds: float) -> None:
    """One line for each case that begins or ends."""
    if not board.update(name, stage, seconds) or stage in WAITS:
        return
    over = board.over(name)
    if over or name not in board.said:
        board.said.add(name)
        total = f"  ({board.count_text()})" if over else ""
        console.print(Text(f"{name}  {stage} {seconds:6.1f} s{total}"), soft_wrap=True)


def _draw_board(live: Live, board: _Board, name: str, stage: str, seconds: float) -> None:
    """A row for each case that is at work or has just ended."""
    changed = board.update(name, stage, seconds)
    if changed or monotonic() - board.drawn > REFRESH_S:
        board.drawn = monotonic()
        live.update(Group(Text(board.count_text()), board.table()), refresh=True)
