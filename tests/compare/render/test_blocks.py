"""One list of blocks in both back ends: each kind of block, and its rule for a terminal."""

from io import StringIO

import pytest

from compare.render.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    DifferenceItem,
    Differences,
    Fold,
    Heading,
    PageOnly,
    Row,
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Widget,
)
from compare.render.html import to_html
from compare.render.terminal import console, print_blocks, print_sections

TABLE = Table(
    name="Sizes",
    columns=(Column(heading="array", prose=True), Column(heading="per chip"), Column(heading="why", page_only=True)),
    rows=(
        Row(name="cache", code="k", cells=(Cell("1.5 MB", exact="1,500,000 B"), Cell("<x>")), note="of 8 heads"),
        Row(name="weights", cells=(Cell("16 GB", style="zero"), Cell("–"))),
    ),
)


def in_terminal(*blocks: Block, details: bool = False, width: int = 100) -> list[str]:
    file = StringIO()
    out = console(file)
    out.width = width
    print_blocks(blocks, out=out, details=details)
    return file.getvalue().splitlines()


def test_a_table_is_aligned_and_leaves_out_what_only_a_page_has_room_for() -> None:
    assert in_terminal(TABLE) == [
        "            per",
        "array      chip",
        "───────────────",
        "cache k  1.5 MB",
        "   of 8 heads",
        "weights   16 GB",
    ]


def test_a_table_with_no_room_becomes_sentences() -> None:
    columns = (Column(heading="array", prose=True), *(Column(heading=f"on_chip_number_{n}") for n in range(4)))
    rows = (Row(name="cache", cells=tuple(Cell(f"{n} MB") for n in range(4))),)
    assert in_terminal(Table(name="Wide", columns=columns, rows=rows), width=60) == [
        "cache: on_chip_number_0 0 MB, on_chip_number_1 1 MB,",
        "   on_chip_number_2 2 MB, on_chip_number_3 3 MB",
    ]


def test_a_table_on_a_page_has_every_column_and_the_exact_value() -> None:
    html = str(to_html([TABLE]))
    assert '<td title="1,500,000 B">1.5 MB</td><td>&lt;x&gt;</td>' in html
    assert '<tr class="formula"><td colspan="3"><span>of 8 heads</span></td></tr>' in html
    assert 'aria-label="Sizes"' in html


@pytest.mark.parametrize(
    ("block", "short", "long"),
    [
        (Sentence("as `x` is", Tone.SOFT), ["as x is"], ["as x is"]),
        (Heading("Sizes"), ["", "Sizes"], ["", "Sizes"]),
        (Bullets(("a", "b")), ["a", "b"], ["a", "b"]),
        (Details((Sentence("more"),)), [], ["more"]),
        (PageOnly((Sentence("more"),)), [], []),
        (Fold(summary="two more", blocks=(Sentence("more"),)), [], []),
        (Fold(summary="two more", blocks=(Sentence("more"),), terminal=Shown.SUMMARY), ["two more"], ["two more"]),
        (Fold(summary="two more", blocks=(Sentence("more"),), terminal=Shown.BLOCKS), ["more"], ["more"]),
        (Widget(template="figures.html.j2", values={"pictures": []}), [], []),
    ],
)
def test_each_block_has_its_rule_for_a_terminal(block: Block, short: list[str], long: list[str]) -> None:
    assert in_terminal(block) == short
    assert in_terminal(block, details=True) == long


def test_a_page_shows_every_block() -> None:
    html = str(
        to_html(
            [
                Heading("Sizes", anchor="sizes"),
                Sentence("as `<x>` is", Tone.SOFT),
                Bullets(("a", "b")),
                Details((Sentence("inside"),)),
                PageOnly((Sentence("page"),)),
                Fold(summary="two", blocks=(Sentence("more"),)),
                Widget(template="figures.html.j2", values={"pictures": [("name", "what it <shows>", "data:,")]}),
            ]
        )
    )
    for words in (
        '<h3 id="sizes">Sizes</h3>',
        '<p class="how">as <code>&lt;x&gt;</code> is</p>',
        "<li>b</li>",
        "<p>inside</p>",
        "<p>page</p>",
        "<summary>two</summary>\n<p>more</p>",
        'alt="what it &lt;shows&gt;"',
    ):
        assert words in html


def difference(number: int) -> DifferenceItem:
    return DifferenceItem(
        amount=f"{number} MB",
        arm="JAX",
        collective="all-gather over tp",
        scope="head",
        verdict="induced",
        cause="output-gather",
        sentence="all of `y` is gathered",
        remedy="shard it",
        executions="1 ×",
        instructions=1,
        by_arm="",
        sources=(("model.py:7", "5 MB"),),
        absent_in=("tpu+explicit",),
        control="",
        contract=(),
        near=(),
        evidence=(),
    )


def test_of_many_differences_a_screen_has_the_first_three_in_two_lines_each() -> None:
    block = Differences(heading="Largest", items=tuple(map(difference, (9, 8, 7, 6))))
    assert in_terminal(block)[:3] == [
        "Largest",
        " 1     9 MB JAX: all-gather over tp in head, 1 ×",
        "            induced, output-gather; model.py:7; absent in tpu+explicit",
    ]
    assert in_terminal(block)[7:] == ["            and 1 more: --details"]
    assert sum("JAX:" in line for line in in_terminal(block, details=True)) == 4
    assert "            induced, output-gather: all of y is gathered" in in_terminal(block, details=True)
    assert str(to_html([block])).count('<details class="finding induced">') == 4


def test_a_section_with_nothing_for_a_terminal_is_not_printed() -> None:
    file = StringIO()
    page = Section(anchor="a", title="mesh", link="mesh", blocks=(PageOnly((Sentence("drawn"),)),))
    both = Section(anchor="b", title="prefill", link="prefill", lead="what it needs", blocks=(Sentence("all"),))
    print_sections([page, both], out=console(file), details=False)
    assert file.getvalue() == "\nPrefill: what it needs\nall\n"


def test_nothing_that_a_program_wrote_is_obeyed() -> None:
    hostile = "\x1b[2J<b>[red]\r\nnext\x07"
    rows = (Row(name=hostile, cells=(Cell(hostile),)),)
    table = Table(name=hostile, columns=(Column(heading="a"), Column(heading="b")), rows=rows)
    blocks = (Sentence(hostile), Bullets((hostile,)), table, Heading(hostile))
    text = "\n".join(in_terminal(*blocks))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "<b>" not in str(to_html(blocks))
