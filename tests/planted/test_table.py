"""The table of planted defects itself: its arithmetic, its lines, and the page that is made of it."""

from pathlib import Path

import pytest

from compare.verdict.causes import INDUCED, INFLATED
from meshes.scopes import SCOPES
from tests.laws.workers import ROOT
from tests.planted.defect import ARMS, Defect, Site, amount
from tests.planted.page import page
from tests.planted.programs import PlantError, place_of, plant
from tests.planted.table import CHAPTERS, DEFECTS, LINES, SETTINGS, changes, read_chapter
from tests.tables import TableError

VERDICTS = {
    "inherent",
    *(f"inflated {cause.name}" for cause in INFLATED),
    *(f"induced {cause.name}" for cause in INDUCED),
}


def test_an_amount_is_read_as_it_is_written() -> None:
    assert amount("2·3/4·8 + 1/2·4 − 1") == 13
    with pytest.raises(ValueError, match="1/3 is 1/3, no whole number"):
        amount("1/3")


CHAPTER = """\
title = "Pins"
text = "A pin says something else."

[[defect]]
name = "one"
what = "a line is another"
jax.line = ["decoder/layers.py", "x = y + y"]
jax.new = "x = 2 * y"
rows = [["norm all-gather@tp", 1, "4", "inherent"]]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("what =", "waht =", "chapter.toml, one: Object contains unknown field `waht`"),
        ("title =", "name =", "chapter.toml: Object contains unknown field `name`"),
        ('what = "a line is another"\n', "", "chapter.toml, one: Object missing required field `what`"),
        ("jax.new", "jax.next", "chapter.toml, one: Object contains unknown field `next` - at `$.jax`"),
        ("jax.new", "jax.reported", "chapter.toml, one: jax has a line, and either `new` or `replace`"),
        ('jax.new = "x = 2 * y"', 'jax.replace = ["y", "z"]', "'y' stands 2 times in 'x = y [+] y', not once"),
        ('["decoder/layers.py", "x = y + y"]', '"summ"', "there is no line 'summ'; there are down-weight, "),
        ("rows =", 'setting = "dp8"\nrows =', "there is no setting 'dp8'; there are dp2tp4, "),
        ("rows =", 'why_of = "two"\nrows =', "there is no defect further up 'two'"),
        (', "inherent"]', "]", "a row is .scope kind@axes, times, bytes, verdict., or has "),
        ("norm all-gather", "norm", "chapter.toml, one: 'norm@tp' is not a scope, and kind@axes"),
    ],
)
def test_a_table_with_a_slip_is_one_error_that_names_the_defect(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    def read(text: str) -> tuple[Defect, ...]:
        (tmp_path / "chapter.toml").write_text(text)
        return read_chapter(tmp_path / "chapter.toml", SETTINGS, LINES)[1]

    (defect,) = read(CHAPTER)
    assert (defect.chapter, defect.sites["jax"].new, defect.rows[0].step_bytes) == ("Pins", "x = 2 * y", 4)
    assert CHAPTER.count(old) == 1
    with pytest.raises(TableError, match=message.replace("$", "[$]")):
        read(CHAPTER.replace(old, new))


def test_there_are_enough_and_each_has_its_own_name() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS) >= 40
    assert sum(1 for defect in DEFECTS if defect.harmless) >= 10
    assert {defect.chapter for defect in DEFECTS} == set(CHAPTERS)
    assert {arm for _, arm in changes()} == set(ARMS)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_verdicts_add_up_and_are_known(defect: Defect) -> None:
    for row in defect.rows:
        assert row.scope in SCOPES
        assert set(row.verdicts) <= VERDICTS
        assert sum(row.verdicts.values()) == row.step_bytes, (row.scope, row.collective)
    assert len({(row.scope, row.collective) for row in defect.rows}) == len(defect.rows)
    assert all(amount(text) > 0 for text in defect.unserved.values())


@pytest.mark.parametrize(("defect", "arm"), changes(), ids=[f"{row.name} {arm}" for row, arm in changes()])
def test_a_defect_is_planted_in_exactly_one_line_and_told_at_one(defect: Defect, arm: str, tmp_path: Path) -> None:
    site = defect.sites[arm]
    plant(arm, site, tmp_path)
    package = tmp_path / ARMS[arm]
    before = (ROOT / ARMS[arm] / site.file).read_text(encoding="utf-8").splitlines()
    after = (package / site.file).read_text(encoding="utf-8").splitlines()
    at = place_of("\n".join(before), site.old) - 1
    assert [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [at]
    assert after[at].strip() == site.new
    compile("\n".join(after), site.file, "exec")
    name, line = site.reported if site.reported[0] else (site.file, site.new)
    if defect.extra:
        assert place_of((package / name).read_text(encoding="utf-8"), line)


def test_a_line_that_is_no_more_or_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlantError, match="0 lines are 'no such line'"):
        plant("jax", Site("decoder/layers.py", "no such line", ""), tmp_path)
    with pytest.raises(PlantError, match="2 lines are"):
        place_of("same\n  same\n", "same")


def test_the_page_is_the_one_that_the_table_makes() -> None:
    shipped = (ROOT / "docs/planted.md").read_text(encoding="utf-8")
    assert shipped == page(), "make it again: python -m tests.planted > docs/planted.md"


def test_the_four_cases_of_the_real_model_are_the_published_ones() -> None:
    """By hand elsewhere, before this table was made: Llama-3.2-1B, dp2tp4, S 512."""
    by_name = {defect.name: defect for defect in DEFECTS}
    (row,) = by_name["down-by-output-1b"].rows
    assert row.verdicts == {"induced activation-gather": 402_653_184, "inherent": 100_663_296}
    stream = by_name["scattered-stream"]
    gathered = [row for row in stream.rows if row.collective == "all-gather@tp"]
    assert sum(row.step_bytes for row in gathered) == 201_326_592
    reported = {"inherent": 0, "inflated": 0, "induced": 0}
    for row in stream.rows:
        for name, number in row.verdicts.items():
            reported[name.partition(" ")[0]] += number
    winners = 3 * 4 * 4 * 6 // 4  # of `sample`, as before
    assert reported == {"inherent": 408_944_712 - winners, "inflated": 67_108_864, "induced": 77_824}
    assert sum(reported.values()) == 476_131_400 - winners
    assert {name: amount(text) for name, text in stream.unserved.items()} == {"embed all-reduce@tp": 6_291_456}
