"""One palette: what a verdict is coloured in a terminal and a figure it is on the page."""

import re

from compare.render.html import read_static
from compare.render.palette import COMPUTE, UNCLEAR, VERDICTS
from compare.render.terminal import STYLES


def test_the_page_and_the_terminal_have_the_colours_of_the_figures() -> None:
    light = read_static("page.css").partition("@media")[0]
    declared = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    assert {name: declared[name] for name in VERDICTS} == VERDICTS == STYLES
    assert (declared["compute"], declared["unknown"]) == (COMPUTE, UNCLEAR)


def test_no_other_file_writes_the_colour_of_induced_bytes() -> None:
    from tests.places import ROOT

    written = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "compare").rglob("*.*")
        if path.suffix in (".py", ".css", ".js", ".j2") and VERDICTS["induced"] in path.read_text(encoding="utf-8")
    }
    assert written == {"compare/render/palette.py", "compare/render/templates/page.css"}
