"""The law table itself: its arithmetic, what it says of the plan, and the page that is made of it."""

from pathlib import Path

import pytest

from compare.contract.reference_algorithms import required_rows
from compare.contract.row import ContractRow
from meshes.devices.mesh_spec import AXES
from meshes.scopes import SCOPES
from tests.laws.law import ALL, PASSES, Law, Program, Setting, number
from tests.laws.page import page
from tests.laws.table import CHAPTERS, KINDS, is_long, read_chapter, settings
from tests.tables import TableError

ROOT = Path(__file__).parents[2]
ROWS = [(each, phase, program) for each in settings() for phase in each.phases for program in each.programs]


def test_a_product_is_read_as_it_is_written() -> None:
    assert number("4·8·128·256·2") == 2_097_152
    assert number("0") == 0


CHAPTER = """\
title = "Tensor parallelism"
text = "It splits weights."

[[setting]]
mesh = "tp8"
laws = [["sample all-gather@tp", "step", "8·4", "", "ids"]]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mesh =", "mesch =", "chapter.toml, a setting without a mesh: Object contains unknown field `mesch`"),
        ("laws =", "batch = 8 #", "chapter.toml, tp8: Object missing required field `laws`"),
        ("laws =", 'batch = "8"\nlaws =', "chapter.toml, tp8: Expected `int`, got `str` - at `[$].batch`"),
        ("laws =", 'model = "large"\nlaws =', "chapter.toml, tp8: there is no model 'large'; there are dense, "),
        ("laws =", 'model = { like = "dense", depth = 2 }\nlaws =', "chapter.toml, tp8: a model has no depth"),
        ('"ids"', '"idds"', "chapter.toml, tp8: there is no kind 'idds'; there are winners, ids, "),
        (', "", "ids"', "", "chapter.toml, tp8: a row is .block kind@axes, pass, "),
        ('"tp8"', "tp8", "chapter.toml: Invalid value"),
    ],
)
def test_a_table_with_a_slip_is_one_error_that_names_the_mesh(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chapter.toml"
    path.write_text(CHAPTER)
    (law,) = read_chapter(path, KINDS).settings[0].laws
    assert (law.prefill, law.decode, law.what) == ("8·4", None, "its id")
    assert CHAPTER.count(old) == 1
    path.write_text(CHAPTER.replace(old, new))
    with pytest.raises(TableError, match=message):
        read_chapter(path, KINDS)


def test_the_page_is_the_one_that_the_table_makes() -> None:
    shipped = (ROOT / "docs/laws.md").read_text(encoding="utf-8")
    assert shipped == page(), "make it again: python -m tests.laws > docs/laws.md"


def test_a_plain_run_compiles_every_phase_and_both_arms_of_every_setting() -> None:
    for setting in settings():
        plain = [row[1:] for row in ROWS if row[0] is setting and not is_long(*row)]
        assert {phase for phase, _ in plain} == set(setting.phases), setting.name
        assert {program.arm for _, program in plain} == {program.arm for program in setting.programs}, setting.name


def test_a_plain_run_compiles_every_program_on_a_third_of_its_settings() -> None:
    for program in ALL:
        rows = [row for row in ROWS if row[2] == program]
        plain = {row[0].name for row in rows if not is_long(*row)}
        assert len(plain) >= len({row[0].name for row in rows}) / 3, program.title


def test_every_parallelism_has_its_laws() -> None:
    """Beside `dp`, which no collective names."""
    named = {axis for each in settings() for law in each.laws for axis in law.collective.partition("@")[2].split(",")}
    assert named == set(AXES) - {"dp"}
    assert any(each.mesh.endswith("+sp") for each in settings())
    silent = {"norm", "layer.moe.experts"}
    assert {law.block for each in settings() for law in each.laws} == set(SCOPES) - silent


@pytest.mark.parametrize("setting", settings(), ids=lambda each: each.name)
def test_the_passes_are_those_of_the_case(setting: Setting) -> None:
    for phase in setting.phases:
        case = setting.case(phase, ALL[0])
        assert setting.layers * case.mesh.pp == case.model.layers
        assert setting.ticks == case.microbatches + case.mesh.pp - 1
        assert {law.per for law in setting.laws} <= set(PASSES)


@pytest.mark.parametrize(
    ("setting", "phase", "program"), ROWS, ids=[f"{row[0].name} {row[1]} {row[2].title}" for row in ROWS]
)
def test_what_is_not_as_the_plan_asks_is_said(setting: Setting, phase: str, program: Program) -> None:
    """The contract, which is derived from the numbers of a case, and the laws, which are written by hand, agree."""
    required = {(row.scope, row.axes): row for row in required_rows(setting.case(phase, program))}
    by_place: dict[tuple[str, str], list[Law]] = {}
    for law in setting.laws:
        if law.bytes_in(phase) and program in law.programs:
            by_place.setdefault((law.block, law.collective.partition("@")[2]), []).append(law)
    assert set(required) <= set(by_place), "the plan asks for what no law says"
    for place, laws_there in by_place.items():
        serving = [law for law in laws_there if not law.finding]
        assert all(law.note for law in laws_there if law.finding), (place, "a finding says what it is")
        if place not in required:
            assert not serving, (place, "the plan does not ask for it: a finding")
        elif not _agrees(required[place], laws_there, setting=setting, phase=phase):
            assert any(law.note for law in laws_there), (place, required[place].kind, required[place].formula)


def _agrees(row: ContractRow, emitted: list[Law], *, setting: Setting, phase: str) -> bool:
    """Whether the laws have the row's kind, and its bytes: in a pipeline those of its busy ticks."""
    kinds = {law.collective.partition("@")[0] for law in emitted}
    moved = sum(law.each * number(law.bytes_in(phase) or "0") * setting.passes(law.per) for law in emitted)
    (per,) = {law.per for law in emitted}
    busy = setting.ticks - row.idle_ticks if per != "step" else setting.ticks
    return kinds == {row.kind} and moved * busy == row.executions * row.payload_bytes * setting.ticks


def test_every_chapter_has_laws() -> None:
    for chapter in CHAPTERS:
        assert chapter.settings, chapter.title


def test_a_note_is_said_once_and_named_in_the_tables() -> None:
    lines = page().split("\n")
    for note in {law.note for each in settings() for law in each.laws if law.note}:
        (line,) = [line for line in lines if line.partition(". ")[2] == f"{note[0].upper()}{note[1:]}."]
        assert any(cell.endswith(f"| [{line.partition('.')[0]}](#notes) |") for cell in lines)


def test_the_three_gathers_of_sdpa_are_one_row_with_the_sum_of_their_bytes() -> None:
    """tp8, by hand: prefill q and k of 24 heads, v of 8; decode q of a token, k and v of 128 places of 8 heads."""
    rows = [
        line.split(" | ") for line in page().split("\n") if line.startswith("| `layer.attention.core` | all-gather")
    ]
    assert rows[0][2:6] == [
        "q, k, v",
        "3 a layer",
        f"16·64·24·32·2 + 16·64·24·32·2 + 16·64·8·32·2 = {2 * 1_572_864 + 524_288:,}",
        f"16·1·24·32·2 + 16·128·8·32·2 + 16·128·8·32·2 = {24_576 + 2 * 1_048_576:,}",
    ]
    assert not [row for row in rows if row[2] in ("q", "k", "v") and row[-1].startswith("[1]")]
