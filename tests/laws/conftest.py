"""The programs of the laws, made together: in one process for an arm, and in one for a compiler."""

from collections.abc import Callable

import pytest

from tests.laws.programs import Found, Job, compile_jobs, count_collectives


@pytest.fixture(scope="module")
def counts_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Job], Found]:
    """What a program has; those of all tests that were chosen in this file are made when the first one asks."""
    jobs = [Job.of(**item.callspec.params) for item in request.session.items if item.path == request.path]
    folders = compile_jobs(list({job.key: job for job in jobs}.values()), tmp_path_factory.mktemp("laws"))
    return lambda job: count_collectives(folders[job.key])
