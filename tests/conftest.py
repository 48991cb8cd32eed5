"""What holds for every test: how many processes run them, and that Ctrl-C reaches the programs under test."""

import signal

import pytest

# Where a shell started the tests in the background, it ignores Ctrl-C, and so would every program under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WORKERS = 2
"""Of the whole suite.  Each may compile programs of a gigabyte."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two; for one file none, since starting them takes longer than most files."""
    files = [word for word in config.invocation_params.args if word.partition("::")[0].endswith(".py")]
    return 0 if len(files) == 1 else WORKERS
