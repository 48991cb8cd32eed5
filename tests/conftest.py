"""What holds for every test: how many processes run them, and that Ctrl-C reaches the programs under test."""

import gc
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No test is timed: an example that takes long on a loaded machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Where a shell started the tests in the background, it ignores Ctrl-C, and so would every program under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WORKERS = 2
"""Of the whole suite.  Each may compile programs of a gigabyte."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two; for one file none, since starting them takes longer than most files."""
    files = [word for word in config.invocation_params.args if word.partition("::")[0].endswith(".py")]
    return 0 if len(files) == 1 else WORKERS


LONGEST = (
    "compare/gallery/test_compile_lessons.py",
    "planted/test_planted.py",
    "compare/test_run.py",
    "twins/test_torchxla.py",
    "torchxla_impl/test_tpu.py",
    "surprises/test_surprises.py",
    "twins/test_jax.py",
    "compare/test_sweep.py",
    "laws/test_torchxla.py",
    "witnesses/test_programs.py",
    "witnesses/test_numerics.py",
    "compare/test_doors.py",
    "compare/run/test_scheduler.py",
    "laws/test_jax.py",
    "compare/query/test_named_report.py",
    "compare/test_execute.py",
    "twins/test_patterns.py",
    "compare/diff/own/test_api_examples.py",
    "compare/run/folder/test_untrusted_paths.py",
)
"""Files that take from three minutes down to half of one, the longest first."""


def pytest_collection() -> None:
    """What is collected stays: looking for garbage in it takes a quarter of the time that collecting does."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes share the files, the longest ones begin first: none is left for the end, alone."""
    if not hasattr(config, "workerinput"):
        return
    ranks = {Path(__file__).parent / file: rank for rank, file in enumerate(LONGEST)}
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks) + (item.path not in slow)))
