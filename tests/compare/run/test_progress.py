"""Progress, as lines and as a table that stays in place."""

import io

from rich.console import Console

from compare.run.progress import show_events
from compare.run.results import Event

EVENTS = [
    ("lower", "start", 0.0, ""),
    ("lower", "import", 0.4, ""),
    ("lower", "import", 0.5, ""),
    ("lower", "done", 2.1, ""),
    ("compile", "start", 0.0, ""),
    ("compile", "crashed", 3.0, "died of SIGABRT: Check failed: [x]"),
]


def print_events(*, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100, _environ={})
    with show_events(console) as notify:
        for step, stage, seconds, error in EVENTS:
            notify(Event(arm="jax", phase="decode", cell="tpu", step=step, stage=stage, seconds=seconds, error=error))
    return console.file.getvalue()


def test_without_a_terminal_each_change_is_a_plain_line():
    assert print_events(terminal=False).splitlines() == [
        "jax       decode   tpu         lower   start       0.0 s",
        "jax       decode   tpu         lower   import      0.4 s",
        "jax       decode   tpu         lower   done        2.1 s",
        "jax       decode   tpu         compile start       0.0 s",
        "jax       decode   tpu         compile crashed     3.0 s  died of SIGABRT: Check failed: [x]",
    ]


def test_on_a_terminal_one_row_for_each_cell_stays_in_place():
    text = print_events(terminal=True)
    for word in ("arm", "phase", "cell", "jax", "decode", "tpu", "import", "crashed"):
        assert word in text
    assert "\x1b[" in text


def test_an_arm_that_is_not_installed_is_told_once():
    console = Console(file=io.StringIO(), width=100, _environ={})
    with show_events(console) as notify:
        for cell in ("tpu", "tpu+gspmd"):
            notify(
                Event(arm="jax", phase="decode", cell=cell, step="", stage="not-installed", seconds=0, error="get it")
            )
    assert console.file.getvalue() == "jax       get it\n"
