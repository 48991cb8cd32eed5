"""Reports to draw, a browser to look at them, a toy arm, and a cache of compiled programs."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from compare.passes.lineage import trace_archive
from compare.run.cache import cache_folder
from compare.timeline.timeline import plain_strings
from tests.compare.render.browsers import start_browser
from tests.compare.render.reports import make_report, make_report_without_torchxla
from tests.compare.run.toy_framework import case, made, made_once, toy

__all__ = ["browser", "case", "failed_report", "made", "made_once", "report", "toy"]


@pytest.fixture(autouse=True, scope="session")
def one_lineage() -> Iterator[None]:
    """Dozens of tests judge the programs of the example run: equal bytes have one lineage, which none changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("compare.report.programs.trace_archive", lru_cache(maxsize=64)(trace_archive))
        yield


@pytest.fixture(autouse=True, scope="session")
def strings_of_a_command() -> Iterator[None]:
    """As `python -m compare.trace` reads and a run is timed: a fifth of the time of small timelines is Arrow's strings.

    tests/compare/metrics/test_section.py holds Arrow's against them.
    """
    with plain_strings():
        yield


@pytest.fixture(scope="session")
def shared_cache() -> Path:
    """For tests that need a run and not its making: several files ask for the same programs."""
    return cache_folder()


@pytest.fixture
def report() -> dict[str, Any]:
    """tp4pp2, prefill: TorchXLA gathers q, k and v, JAX does not."""
    return make_report()


@pytest.fixture
def failed_report() -> dict[str, Any]:
    """The same where TorchXLA is not installed."""
    return make_report_without_torchxla()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests of a file: its start is what costs."""
    driver = start_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()
