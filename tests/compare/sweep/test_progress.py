"""What is told of a sweep while it runs."""

import io

import pytest
from rich.console import Console

from compare.sweep.combination import Combination
from compare.sweep.progress import show_progress

EVENTS = [
    *((name, "waiting", 0.0) for name in ("one", "two", "three")),
    ("one", "already done", 0.0),
    ("two", "start", 0.1),
    ("two", "1 of 8, compile jax", 3.0),
    ("three", "submitted", 0.0),
    ("three", "start on node 3f2a", 0.0),
    ("two", "done", 30.0),
    ("three", "crashed", 5.0),
]


def print_progress(console, *events, refused=()):
    with show_progress(refused, console=console) as notify:
        for event in events:
            notify(*event)


def lines(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_where_nobody_looks_there_is_a_line_for_each_that_begins_or_ends():
    out = io.StringIO()
    refused = [Combination(model="tiny", mesh="ep8", refused="tiny has no experts")]
    print_progress(Console(file=out, width=40), *EVENTS, refused=refused)
    assert lines(out.getvalue()) == [
        "tiny on ep8: tiny has no experts",
        "one already done 0.0 s (1 of 3 cases done, 0 s)",
        "two start 0.1 s",
        "three start on node 3f2a 0.0 s",
        "two done 30.0 s (2 of 3 cases done, 0 s)",
        "three crashed 5.0 s (2 of 3 cases done, 1 failed, 0 s)",
    ]


def test_a_terminal_shows_what_each_is_at():
    out = io.StringIO()
    print_progress(Console(file=out, force_terminal=True, width=100), *EVENTS[:6])
    last = out.getvalue()
    assert "1 of 8, compile jax" in last
    assert "1 of 3 cases done" in last


def interrupt(console):
    with show_progress(console=console) as notify:
        notify("one", "already done", 0.0)
        notify("two", "waiting", 0.0)
        raise KeyboardInterrupt


def test_an_interrupt_is_told_how_to_go_on():
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        interrupt(Console(file=out, width=40))
    assert lines(out.getvalue())[-1] == "1 of 2 cases done, 0 s; run the same command again to continue"
