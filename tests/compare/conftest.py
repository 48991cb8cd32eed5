"""Reports to draw, a browser to look at them, and a toy arm."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compare.render.browsers import start_browser
from tests.compare.render.reports import make_report, make_report_without_torchxla
from tests.compare.run.toy_framework import case, toy

__all__ = ["browser", "case", "failed_report", "report", "toy"]


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
