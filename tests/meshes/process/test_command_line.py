"""How every door ends: a wrong option, an error, a signal: one line each, and the status that says which."""

import argparse
import os
import signal

import pytest

from meshes.process.command_line import LARGEST, Parser, Stopped, command_parser, run_to_status, stoppable, whole_number


@pytest.mark.parametrize(("words", "found"), [("1", 1), ("08", 8), (str(LARGEST), LARGEST)])
def test_a_whole_number_is_read(words, found):
    assert whole_number(words) == found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("0", "is no whole number from 1"),
        ("-1", "is no whole number from 1"),
        ("1.5", "is no whole number from 1"),
        ("1e3", "is no whole number from 1"),
        ("1_0", "is no whole number from 1"),
        ("８", "is no whole number from 1"),
        (" 8", "is no whole number from 1"),
        ("many", "is no whole number from 1"),
        (str(LARGEST + 1), "is more than 2,147,483,647"),
        ("9" * 400, "is more than 2,147,483,647"),
        ("9" * 5_000, "is more than 2,147,483,647"),
    ],
)
def test_another_is_refused(words, says):
    with pytest.raises(argparse.ArgumentTypeError, match=says):
        whole_number(words)


def test_a_wrong_option_is_one_line_of_at_most_500_characters(capsys):
    parser = Parser(prog="door")
    parser.add_argument("--batch", type=whole_number)
    for words in (["--batch", "9" * 400_000], ["--\x1b[31m\n" + "x" * 400_000], ["--batch", "\x1b[31m\n8"]):
        with pytest.raises(SystemExit) as ended:
            parser.parse_args(words)
        err = capsys.readouterr().err
        assert ended.value.code == 2
        assert err.startswith("error: ")
        assert err.endswith("; see door --help\n")
        assert (err.count("\n"), err.strip().isprintable()) == (1, True)
        assert len(err) <= 501


ENDS = {
    "a value": (ValueError("what was\nread \x1b[31m"), 2, "error: what was read \N{REPLACEMENT CHARACTER}[31m\n"),
    "the system": (OSError(28, "No space left on device", "/a\nb"), 2, "error: /a b: No space left on device\n"),
    "its output": (OSError(28, "No space left on device"), 2, "error: output: No space left on device\n"),
    "memory": (MemoryError(), 2, "error: there is not enough memory for it\n"),
    "an interrupt": (KeyboardInterrupt(), 130, "stopped\n"),
    "a signal": (Stopped(signal.SIGTERM), 143, "stopped\n"),
}


@pytest.mark.parametrize(("error", "status", "says"), ENDS.values(), ids=ENDS)
def test_whatever_stops_the_work_is_one_line(capsys, error, status, says):
    def work() -> int:
        raise error

    assert run_to_status(work) == status
    assert capsys.readouterr() == ("", says)


def test_work_that_ends_well_has_its_own_status():
    assert [run_to_status(lambda status=status: status) for status in (0, 1)] == [0, 1]


@pytest.fixture
def unignored():
    """Signals as they are where nobody has them ignored, as `nohup` does."""
    before = {}

    def set_to_default(number):
        before[number] = signal.signal(number, signal.SIG_DFL)

    yield set_to_default
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_work_as_an_interrupt_does_and_once(number, unignored):
    cleaned = []
    unignored(number)

    def work() -> None:
        with stoppable():
            try:
                os.kill(os.getpid(), number)
                signal.pause()
            finally:
                os.kill(os.getpid(), number)  # a second one does not stop what is taken away
                cleaned.append(True)

    with pytest.raises(Stopped):
        work()
    assert cleaned == [True]
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_default_that_the_help_says_is_not_said_twice():
    parser = command_parser("compare.toy", "A toy.", example="--size 8")
    parser.add_argument("--size", default=8, help="of all (default: 8, as on a v5e)")
    parser.add_argument("--depth", default=3, help="of each")
    text = " ".join(parser.format_help().split())
    assert "of all (default: 8, as on a v5e) --depth" in text
    assert "of each (default: 3)" in text
