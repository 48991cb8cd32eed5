"""The programs of the table, all made together when the first test asks: those of the tests that were chosen."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from compare.report.programs import JudgedProgram
from tests.planted.defect import ARMS
from tests.planted.programs import Job, judge_job, make


def jobs_of(defect: object, arm: str | None) -> list[Job]:
    """What a test needs: the planted programs, and those of both arms as they are."""
    jobs = []
    for name in [arm] if arm else list(defect.sites):
        job = Job.of(defect, name)
        others = [Job(other, defect.setting.case_of_others(defect.phase)) for other in ARMS if other != name]
        jobs += [job, job.base, *others]
    return jobs


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Job], JudgedProgram]:
    """A program, judged."""
    planted_items = [item for item in request.session.items if Path(__file__).parent in item.path.parents]
    words = [item.callspec.params for item in planted_items if "program" in getattr(item, "fixturenames", ())]
    jobs = [job for row in words for job in jobs_of(row["defect"], row.get("arm"))]
    folders = make(jobs, tmp_path_factory.mktemp("planted"))
    by_key = {job.key: job for job in jobs}
    read = cache(lambda key: judge_job(by_key[key], folders[key]))
    return lambda job: read(job.key)
