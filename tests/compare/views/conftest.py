"""Reports for the views to draw."""

from typing import Any

import pytest

from tests.compare.views.reports import made_report, made_without_torchxla


@pytest.fixture
def report() -> dict[str, Any]:
    """tp4pp2, prefill: TorchXLA gathers q, k and v, JAX does not."""
    return made_report()


@pytest.fixture
def failed_report() -> dict[str, Any]:
    """The same where TorchXLA is not installed."""
    return made_without_torchxla()
