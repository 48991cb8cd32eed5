"""The Python door: anybody's program in, a table out; and the assertion for a test of one's own model."""

import gzip
import subprocess
import sys
from types import SimpleNamespace

import pytest

import compare
from compare import assert_collectives, collectives
from compare.cli.hlo import main as hlo
from compare.contract.row import JudgeError
from compare.hlo.text.errors import HloError
from compare.run.errors import WorkError
from tests.compare.verdict.toy_hlo import AXES, GATHER, SUM, program
from tests.places import ROOT

TEXT = program(SUM, GATHER, SUM)
COUNTS = {"all-reduce@tensor": 2, "all-gather@tensor": 1}


class Compiled:
    """As JAX's is: it has the text of what was compiled."""

    def __init__(self, text=TEXT):
        self.text = text

    def as_text(self):
        return self.text


class Lowered(Compiled):
    """As JAX's is: its own text is of the program before."""

    def as_text(self):
        return "module @jit_f {\n}\n"

    def compile(self):
        return Compiled(self.text)


@pytest.mark.parametrize(
    "program",
    [TEXT, TEXT.encode(), gzip.compress(TEXT.encode(), mtime=0), Compiled(), Lowered()],
    ids=["text", "bytes", "gzip", "compiled", "lowered"],
)
def test_a_program_is_taken_in_any_spelling(program):
    assert collectives(program, axes=AXES).counts() == COUNTS


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "program.hlo.gz"
    path.write_bytes(gzip.compress(TEXT.encode(), mtime=0))
    for spelled in (path, str(path)):
        assert collectives(spelled, axes="data=2,tensor=4").counts() == COUNTS
    assert collectives(path, mesh="dp2tp4").counts() == {"all-reduce@tp": 2, "all-gather@tp": 1}


def test_a_table_is_a_sequence_with_totals(capsys):
    table = collectives(TEXT, axes=AXES)
    assert (len(table), table[1].kind, [row.name for row in table]) == (3, "all-gather", ["c0", "c1", "c2"])
    # Two sums of 524,288 B send one and a half of it each, the gather of 524,288 B three quarters.
    assert table.step_wire_bytes == 2 * 786_432 + 393_216
    assert str(table).splitlines()[-1] == "3 collectives move 1,966,080 B a step, mean over devices."
    assert capsys.readouterr().out == ""


def test_long_paths_are_broken_between_their_words_and_a_line_of_source_never():
    long = TEXT.replace("jit(step)/layer.mlp.down/dot", "jit(step)/transpose(jvp(a_model))/rematted_computation/dot")
    printed = str(collectives(long.replace("model.py", "/somewhere/a/long/way/to/the/model.py"), axes=AXES))
    assert "…/model.py:7" in printed
    for word in ("transpose(jvp(a_model))/\n", "rematted_computation/\n", "dot_general\n"):
        assert word in "\n".join(line.split("  ")[0].rstrip() for line in f"{printed}\n".splitlines())
    assert max(map(len, printed.splitlines())) <= 100


def test_a_table_is_a_frame_of_the_public_columns():
    frame = collectives(TEXT, axes=AXES).to_pandas()
    assert list(frame.kind) == ["all-reduce", "all-gather", "all-reduce"]
    assert frame.step_wire_bytes.sum() == 2 * 786_432 + 393_216
    assert list(collectives(program(), axes=AXES).to_pandas().columns) == list(frame.columns)


def test_a_notebook_shows_a_table_and_obeys_nothing_in_it():
    html = collectives(TEXT.replace("model.py", "<img src=x>"), axes=AXES)._repr_html_()
    assert html.count("<tr>") == 4
    assert "all-gather over tensor" in html
    assert "<img" not in html


def test_in_a_notebook_long_paths_may_break_and_an_unknown_scope_is_shown():
    html = collectives(TEXT.replace("jit(step)/layer.mlp.down", "jit(f)/a/<b>"), axes=AXES)._repr_html_()
    assert "a/<wbr>&lt;b&gt;/<wbr>dot_general" in html
    assert ">?<" in collectives(program(SUM.partition(", metadata")[0]), axes=AXES)._repr_html_()


class Noted(bytes):
    """As PyTorch/XLA's door hands a program over: with what must be said of it."""

    notes = ("1 scalar tensor was compiled as a constant: <5> (m.py:1)",)


def test_what_is_to_be_said_of_a_program_stands_below_its_table(tmp_path, capsys):
    table = collectives(Noted(TEXT.encode()), axes=AXES)
    assert table.notes == Noted.notes
    assert str(table).splitlines()[-1] == "Note: 1 scalar tensor was compiled as a constant: <5> (m.py:1)."
    assert "&lt;5&gt;" in table._repr_html_()
    table.save(tmp_path / "saved")
    assert collectives(tmp_path / "saved").notes == Noted.notes
    assert hlo([str(tmp_path / "saved")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(table).splitlines()[-1]
    assert "Note" not in str(collectives(TEXT, axes=AXES))


def test_axes_that_are_not_the_program_s_are_told_where_it_knows_its_own():
    class Known(Compiled):
        input_shardings = ((SimpleNamespace(mesh=SimpleNamespace(shape={"data": 2, "tensor": 4})),), {})

    assert collectives(Known()).counts() == COUNTS
    assert collectives(Known()).axes == AXES
    table = collectives(Known(), axes={"a": 4, "b": 2})
    assert table.notes == ("the program's own mesh is data=2,tensor=4, outermost first; the axes here are others",)
    assert collectives(Known(), axes={"a": 2, "b": 4}).notes == ()
    with pytest.raises(HloError, match="this Known: the axes are tensor=4,data=2, and its own mesh is data=2,tensor=4"):
        collectives(Known(), axes={"tensor": 4, "data": 2})


def test_what_is_a_neighbour_s_is_marked_and_each_kind_has_its_total():
    lost = SUM.partition(", metadata")[0]
    printed = str(collectives(program(SUM, lost, GATHER), axes=AXES)).splitlines()
    # The sum that lost its name takes that of what made its parts, which has none here: nothing is made up.
    assert not any("≈" in line for line in printed)
    assert printed[-3:] == [
        "all-reduce over tensor  2  1,572,864 B",
        "all-gather over tensor  1    393,216 B",
        "3 collectives move 1,966,080 B a step, mean over devices.",
    ]
    near = program(lost).replace(
        "negate(p0)", 'negate(p0), metadata={op_name="jit(f)/dot" source_file="m.py" source_line=3}'
    )
    table = collectives(near, axes=AXES)
    assert (table[0].scope, table[0].op_name, table[0].inferred) == ("?", "jit(f)/dot", ("op_name", "source_line"))
    printed = str(table)
    assert "\n≈dot " in printed
    assert " ≈m.py:3, line " in printed
    assert "≈: not its own, but the nearest instruction's." in printed
    html = table._repr_html_()
    assert ">≈dot<" in html
    assert "not its own" in html
    frame = table.to_pandas()
    assert (frame.scope[0], frame.op_name[0], frame.inferred[0]) == ("?", "jit(f)/dot", ["op_name", "source_line"])
    assert near.splitlines()[frame.line[0] - 1].startswith("  c0 = ")


def test_two_tables_are_held_against_each_other():
    first, other = (collectives(program(*wires), axes=AXES) for wires in ([SUM], [SUM, GATHER]))
    assert not first.diff(first)
    assert first.diff(other)
    assert len(first.diff(other)) == 1
    assert "+393 kB" in str(first.diff(other))
    assert "+393 kB" in first.diff(other)._repr_html_()


def test_an_assertion_holds_where_just_these_are_emitted():
    assert_collectives(TEXT, COUNTS, axes=AXES)
    assert_collectives(collectives(TEXT, axes=AXES), COUNTS)
    assert_collectives(program(), {}, axes=AXES)


def test_a_failed_assertion_says_what_was_expected_and_shows_the_table():
    with pytest.raises(AssertionError) as caught:
        assert_collectives(TEXT, {"all-reduce@tensor": 3, "all-to-all@data": 1}, axes=AXES)
    message = str(caught.value).splitlines()
    assert message[1:4] == [
        "  all-reduce@tensor  expected 3, found 2",
        "  all-to-all@data    expected 1, found 0",
        "  all-gather@tensor  expected 0, found 1",
    ]
    assert any("c1" in line for line in message[4:])


def test_a_misspelled_expectation_is_no_failed_assertion():
    with pytest.raises(JudgeError, match="there are data, tensor"):
        assert_collectives(TEXT, {"all-reduce@tenser": 2}, axes=AXES)


@pytest.mark.parametrize(
    ("program", "axes", "error", "said"),
    [
        (7, AXES, WorkError, "int is no program"),
        ("no/such/file.hlo", AXES, FileNotFoundError, "No such file"),
        ("not\nHLO\n", AXES, HloError, "this text: not HLO text"),
        (b"\x00\x01", AXES, HloError, "these bytes: "),
        (TEXT, {"x": 3}, HloError, "make 3 devices"),
        (TEXT, {"x": "8"}, HloError, "cannot read the axes"),
        (TEXT, "x", HloError, "cannot read the axes"),
        (TEXT, [("data", 2)], HloError, "cannot read the axes"),
        ("", AXES, HloError, "this text: the file is empty"),
        ("HloModule one", AXES, HloError, "this text: "),
        (gzip.compress(TEXT.encode(), mtime=0)[:40], AXES, HloError, "these bytes: the gzip file is cut"),
        (TEXT[: len(TEXT) // 2], AXES, HloError, "this text: the text is cut"),
        (Compiled("nonsense\n"), AXES, HloError, "this Compiled: not HLO text"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(program, axes, error, said):
    with pytest.raises(error) as caught:
        collectives(program, axes=axes)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_what_contradicts_itself_is_refused():
    with pytest.raises(HloError, match="named twice"):
        collectives(TEXT, axes=AXES, mesh="tp8")
    with pytest.raises(WorkError, match="this text: is compiled already"):
        collectives(TEXT, axes=AXES, topology="v5e:2x4")


def test_importing_the_package_imports_nothing_else():
    code = "import sys, compare; print(sorted(name for name in sys.modules if name.startswith(('compare.', 'pandas'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="nothing"):
        _ = compare.nothing


def test_the_doors_and_the_version_are_listed():
    """A notebook completes `compare.` from these."""
    assert dir(compare) == [
        "ContractRow",
        "LoadedRun",
        "Profile",
        "Table",
        "__version__",
        "assert_collectives",
        "collectives",
        "contract_rows",
        "judge",
        "load_run",
        "plan",
        "query_runs",
        "read_profile",
        "run",
    ]
    assert compare.__version__[0].isdigit()


def test_a_path_is_shown_from_the_working_directory_and_json_has_all_of_it(tmp_path, monkeypatch):
    text = TEXT.replace('source_file="model.py"', f'source_file="{tmp_path}/deep/model.py"')
    table = collectives(text, axes=AXES)
    assert table[0].source_line == f"{tmp_path}/deep/model.py:7"
    monkeypatch.chdir(tmp_path)
    assert " deep/model.py:7, line " in str(table)
    assert str(tmp_path) not in table._repr_html_()
    assert table.to_pandas()["source_line"][0] == f"{tmp_path}/deep/model.py:7"


def test_the_rows_with_most_bytes_of_a_step_may_stand_first():
    # The sums move 786,432 B each, the gather 393,216.
    turned = program(GATHER, SUM)
    assert [row.kind for row in collectives(turned, axes=AXES)] == ["all-gather", "all-reduce"]
    table = collectives(turned, axes=AXES, sort="step")
    assert list(table.to_pandas()["kind"]) == ["all-reduce", "all-gather"]
    assert str(table).index("all-reduce over") < str(table).index("all-gather over")
    assert not table.diff(collectives(turned, axes=AXES))
    with pytest.raises(HloError, match="rows have no order 'bytes'; there are program and step"):
        collectives(turned, axes=AXES, sort="bytes")
