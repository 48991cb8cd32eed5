"""A table in a terminal without a frame: columns of words to the left, of numbers to the right."""

from collections.abc import Sequence

from rich.align import VerticalAlignMethod
from rich.box import SIMPLE_HEAD
from rich.console import OverflowMethod
from rich.table import Table


def plain_table(
    words: Sequence[str],
    numbers: Sequence[str],
    *,
    overflow: OverflowMethod = "fold",
    vertical: VerticalAlignMethod = "top",
) -> Table:
    """No rows yet.  Words may wrap, numbers never do.  vertical: where headings stand beside one of two lines."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for heading in words:
        table.add_column(heading, overflow=overflow, vertical=vertical)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True, vertical=vertical)
    return table
