"""docs/sql.md: its queries and their answers.  `python -m tests.compare.query.test_page` writes the answers anew."""

import re
import shlex

import pytest

from tests.commands import run_process
from tests.places import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/sql.md"
QUERY = re.compile(r"```sh\n(python -m compare\.query [^`]*?)\n```\n(?:\n```\n([^`]*?)\n```\n)?")


def answer(command):
    return run_process(*shlex.split(command)[1:], check=True).stdout.rstrip("\n")


def text():
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(1, 11))
def test_the_page_shows_what_its_queries_answer(number):
    (part,) = re.findall(rf"^## {number}\. .*?(?=^## |^<!-- /queries)", text(), re.MULTILINE | re.DOTALL)
    ((command, shown),) = QUERY.findall(part)
    assert shown == answer(command)
    assert shown


def test_the_notebook_s_lines_run_as_they_stand():
    (lines,) = re.findall(r"<!-- example: python -->\n```python\n(.*?)```", text(), re.DOTALL)
    done = run_process("-c", lines, check=True)
    assert "1.946701" in done.stdout
    assert "176.99" in done.stdout


if __name__ == "__main__":
    PAGE.write_text(
        QUERY.sub(lambda found: f"```sh\n{found[1]}\n```\n\n```\n{answer(found[1])}\n```\n", text()), encoding="utf-8"
    )
