"""The text of a study: numbers come from rows, and no sentence outlives its data."""

import re
from collections.abc import Sequence

import pytest

from compare.render.picture import Picture
from docs.study.build.answers import Answer, make_answer, value_text
from docs.study.build.errors import StudyError
from docs.study.build.page import make_page
from docs.study.build.text import Text, render_text

MOVES = make_answer(
    "moves",
    ("mesh", "phase", "wire_bytes", "step_ns"),
    [
        ("tp8", "prefill", 7_633_633_616, 85_170_620.0),
        ("tp8", "decode", 7_455_056, 3_202_068.0),
        ("dp2tp4", "decode", 3_194_952, None),
    ],
)

DOT = Picture(name="moves", caption="What moves", png=b"", svg=b"<svg/>")


def fill_in(template: str, answers: Sequence[Answer] = (MOVES,)) -> str:
    by_name = {answer.query: answer for answer in answers}
    text = Text(
        answers=by_name.__getitem__,
        sql=lambda name: f"-- {name}\nSELECT 1",
        names=("moves",),
        draw=lambda name: DOT,
        own=("moves",),
        data="docs/study/data",
    )
    return render_text(template, text)


def test_a_number_has_the_unit_of_its_filter():
    row = '{% set row = rows("moves").one(mesh="tp8", phase="decode") %}'
    assert fill_in(row + "{{ row.wire_bytes | bytes }} in {{ row.step_ns | time }}") == "7.46 MB in 3.20 ms"
    assert fill_in("{{ 0.0712 | percent }}, {{ 0.371 | percent }}, {{ 1.554 | ratio }}") == "7.1 %, 37 %, 1.55 ×"


def test_rows_are_chosen_by_value_by_list_and_by_size():
    assert MOVES.where(phase="decode").column("mesh") == ["tp8", "dp2tp4"]
    assert len(MOVES.where(mesh=["tp8", "dp2tp4"])) == 3
    assert MOVES.highest("wire_bytes").phase == "prefill"
    # A null is neither the largest nor the smallest.
    assert MOVES.lowest("step_ns").phase == "decode"
    assert MOVES.where(mesh="dp2tp4").numbers("step_ns") == []


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ('{{ rows("moves").one(mesh="tp8").wire_bytes }}', "moves has 2 rows with mesh=tp8; the text wants one"),
        ('{{ rows("moves").one(mesh="tp9").wire_bytes }}', "the query moves has 0 rows with mesh=tp9"),
        ('{{ rows("moves").one(mesh="dp2tp4").bytes }}', "no column bytes; it has mesh, phase, wire_bytes, step_ns"),
        ('{{ rows("moves").where(mesh="dp2tp4").highest("step_ns").mesh }}', "has no row with a value of step_ns"),
        ('{{ figure("circles") }}', "no figure is named circles; there are moves"),
        ("{{ wire_bytes }}", "the text cannot be filled in, line 1: 'wire_bytes' is undefined"),
        ("{{ range(a=1, a=1) }}", "the text cannot be filled in: keyword argument repeated: a"),
        ("{% if %}", "the text cannot be filled in, line 1"),
        ("\n{{ 1 / 0 }}", "the text cannot be filled in, line 2: division by zero"),
        ("{{ 1 + 'a' }}", "the text cannot be filled in, line 1: unsupported operand"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "filled in, line 1: maximum recursion depth"),
        ("{{ [1][2:'a'] }}", "the text cannot be filled in, line 1: slice indices"),
        ('{{ "%d" | format("x") }}', "the text cannot be filled in, line 1: %d format"),
        ("{{ range(10**9) | list }}", "the text cannot be filled in, line 1: Range too big"),
    ],
)
def test_what_the_data_do_not_give_is_an_error(template, said):
    with pytest.raises(StudyError) as refused:
        fill_in(template)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "code",
    [
        "cycler.__init__.__globals__.os.popen('touch pwned').read()",
        "self.__init__.__globals__.__builtins__.open('pwned', 'w').write('x')",
        "().__class__.__mro__[1].__subclasses__()",
        "table.__func__.__globals__.re",
        "rows.__wrapped__.__globals__",
        "'{0.__class__.__init__.__globals__}'.format(cycler)",
        "('{0.__class__}' | attr('format'))(table)",
        "claim | attr('__globals__')",
        "lipsum.__globals__['os'].getcwd()",
        'rows("moves").rows[0].values.update(mesh="x")',
    ],
)
def test_a_text_of_others_runs_no_python(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match="the text cannot be filled in"):
        fill_in(f"{{{{ {code} }}}}")
    assert list(tmp_path.iterdir()) == []


def test_a_claim_stands_while_its_data_say_so():
    words = '{{ claim(rows("moves").where(phase="decode").numbers("wire_bytes") | max < 1e7, "Decode moves little") }}.'
    assert fill_in(words) == "Decode moves little."
    more = make_answer("moves", ("phase", "wire_bytes"), [("decode", 2e7)])
    with pytest.raises(StudyError, match="the text says 'Decode moves little', and the data do not"):
        fill_in(words, [more])


def test_a_table_formats_by_the_unit_in_a_columns_name():
    columns = '{"mesh": "plan", "wire_bytes": "moves", "step_ns": "step"}'
    table = '{{ table(rows("moves"), ' + columns + ', name="steps", caption="Steps.") }}'
    assert fill_in(table).splitlines() == [
        '<a id="table-1"></a>**Table 1.** Steps.',
        "",
        "| plan | moves | step |",
        "|---|---:|---:|",
        "| tp8 | 7.63 GB | 85.2 ms |",
        "| tp8 | 7.46 MB | 3.20 ms |",
        "| dp2tp4 | 3.19 MB | – |",
    ]
    assert [value_text("n", 1234), value_text("overlap_share", 0.5), value_text("same", True)] == [
        "1,234",
        "50 %",
        "yes",
    ]


def test_the_query_can_be_asked_again():
    asked = fill_in('{{ query("moves") }}')
    assert "python -m compare.query docs/study/data --file docs/study/queries/moves.sql" in asked
    assert "-- moves\nSELECT 1" in asked


def test_figures_and_tables_are_numbered_each_on_its_own_and_named_before_they_come():
    table = '{{ table(rows("moves"), {"mesh": "plan"}, name="steps", caption="Steps.") }}'
    text = fill_in('See {{ see("moves") }} and {{ see("steps") }}.\n\n' + table + '\n\n{{ figure("moves") }}')
    assert text.startswith("See [figure 1](#figure-1) and [table 1](#table-1).")
    begun = fill_in('Bytes.\n{{ see("steps") }} has them.\n\n' + table)
    assert begun.startswith("Bytes.\n[Table 1](#table-1) has them.")
    assert text.endswith(
        '<a id="figure-1"></a>[![What moves](figures/moves.svg)](figures/moves.svg)\n\n**Figure 1.** What moves'
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ('{{ see("bars") }}', "the text refers to bars, which is no figure or table of it"),
        ('{{ figure("moves") }} {{ figure("moves") }}', "two figures or tables named moves"),
    ],
)
def test_a_number_that_is_not_there_or_is_there_twice_is_an_error(template, said):
    with pytest.raises(StudyError, match=said):
        fill_in(template)


def test_a_long_table_is_folded():
    many = make_answer("moves", ("mesh",), [(f"tp{n}",) for n in range(9)])
    text = fill_in('{{ table(rows("moves"), {"mesh": "plan"}, name="a", caption="On `v6e`.") }}', [many])
    summary = "<details><summary><b>Table 1.</b> On <code>v6e</code>. 9 rows.</summary>"
    assert text.splitlines()[:2] == ['<a id="table-1"></a>', summary]
    page = make_page(text, title="A", pictures={})
    assert f"{summary}\n" in page
    assert '<div class="scroll" role="region" tabindex="0" aria-label="Table 1"><table>' in page


PAGE = """# All

## First part

See [above](#all), [the model](../model.md#what).

<a id="table-1"></a>**Table 1.** Steps.

| plan | step |
|---|---:|
| tp8 | 3 |

## First part

{{ figure("moves") }}
"""


def test_the_page_has_contents_regions_scopes_and_captions():
    page = make_page(fill_in(PAGE), title="A <study>", pictures={"moves": DOT})
    assert "<title>A &lt;study&gt;</title>" in page
    assert '<li class="level-2"><a href="#first-part">First part</a></li>' in page
    assert '<h2 id="first-part">' in page
    assert '<h2 id="first-part-1">' in page
    assert '<figure id="table-1" class="table"><figcaption><strong>Table 1.</strong> Steps.</figcaption><div' in page
    assert '<th scope="col">plan</th>' in page
    assert '<th scope="row">tp8</th>' in page
    assert '<a href="../model.md#what">the model (Markdown)</a>' in page


def test_a_cell_of_many_words_may_be_broken():
    table = "| plan | says |\n|---|---|\n| tp8 | 4 × copy of bf16[32,8] in layer.mlp.up |\n| tp4 | all-gather |\n"
    page = make_page(table, title="A", pictures={})
    assert '<td class="long">4 × copy of bf16[32,8] in layer.mlp.up</td>' in page
    assert "<td>all-gather</td>" in page


def test_the_page_fetches_nothing_and_links_its_pictures_in_full_size():
    page = make_page(fill_in('# All\n\n{{ figure("moves") }}\n'), title="A", pictures={"moves": DOT})
    assert 'src="data:image/svg+xml;base64,PHN2Zy8+"' in page  # <svg/>
    assert (
        '<figcaption><strong>Figure 1.</strong> What moves <a href="figures/moves.svg">Full size</a></figcaption>'
        in page
    )
    assert "http" not in page


HTML = """# T

<script>document.title = "x"</script> <img src=x onerror="document.title=1"> <b onclick="x">y</b>

<details open ontoggle="alert(1)">

<a id="table-1" onclick="x"></a> <a id="x"></a> [y](javascript:alert(1)) <svg/onload=alert(1)> <style>p {}</style>
<!-- <b> --> <?php ?> <![CDATA[<i>]]>

| a |
|---|
| <iframe src="x"></iframe> |

<a id="figure-7"></a>[![c](figures/none.svg)](figures/none.svg)

**Figure 7.** c
"""


def test_a_page_has_no_html_but_that_of_its_tables_and_figures():
    page = make_page(HTML, title="T <b>", pictures={})
    tags = set(re.findall(r"<[^>]*>", page.partition("<main>")[2]))
    assert not {
        tag
        for tag in tags
        if re.search(r"script|<img src=x|onclick|ontoggle|onload|iframe|<style|<!--|<\?|CDATA|javascript", tag)
    }
    for shown in (
        "&lt;script>",
        "&lt;img src=x",
        '&lt;details open ontoggle="alert(1)">',
        "&lt;iframe",
        "&lt;!-- <b> --&gt;",
    ):
        assert shown in page.replace("--> &lt;?php", "--&gt; &lt;?php"), shown
