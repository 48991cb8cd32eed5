"""`python -m compare.hlo`: anybody's HLO text in, rows out, or one line that says why not."""

import gzip
import json
import subprocess
import sys

import pytest

from compare.cli.hlo import main
from compare.hlo.text.errors import HloError
from compare.profile.xplane.reader import read_file
from compare.run.errors import WorkError
from compare.timeline.errors import TimingError
from tests.commands import check_refusal, run_here
from tests.compare.chakra.files import varint
from tests.places import ROOT

TEXT = """HloModule m, num_partitions=8

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  p = f32[100]{0} parameter(0)
  ROOT r = f32[100]{0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=add, metadata={op_name="jit(f)/layer.mlp.down/psum" source_file="m.py" source_line=3}
}
"""  # noqa: E501


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "program.hlo"
    path.write_text(TEXT)
    return path


SERIALIZE = """
import sys
from jaxlib import _hlo
sys.stdout.buffer.write(_hlo.hlo_module_from_text(open(sys.argv[1]).read()).as_serialized_hlo_module_proto())
"""


@pytest.mark.parametrize("is_wrapped", [False, True], ids=["HloModuleProto", "HloProto"])
def test_a_serialized_module_has_the_rows_of_its_text(file, tmp_path, capsys, is_wrapped):
    """As `--xla_dump_hlo_as_proto` writes it; given as a profile, it is called by its name."""
    pytest.importorskip("jaxlib")
    # In a process of its own: XLA reads its flags once, and other tests of this one set theirs.
    words = [sys.executable, "-c", SERIALIZE, str(file)]
    data = subprocess.run(words, capture_output=True, check=True, timeout=100).stdout
    (path := tmp_path / "program.hlo.pb").write_bytes((b"\x0a" + varint(len(data)) if is_wrapped else b"") + data)
    shown = []
    for program in (file, path):
        assert main([str(program), "--axes", "data=2,tensor=4", "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        shown.append({key: value for key, value in row.items() if key not in ("line", "source_line")})
    assert shown[0] == shown[1]
    with pytest.raises(TimingError, match="a serialized HLO module, and no profile"):
        read_file(path)


def test_what_belongs_to_the_other_command_is_called_by_its_name(file, tmp_path):
    with pytest.raises(TimingError, match=r"HLO text, and no profile; python -m compare\.hlo FILE"):
        read_file(file)
    (profile := tmp_path / "host.xplane.pb").write_bytes(b"\x0a\x0e\x12\x09/host:CPU\x08\xff\x01")
    with pytest.raises(HloError, match=r"16 bytes without a computation; a profile is read by .* compare\.trace"):
        main([str(profile)])


def test_json_is_a_list_of_rows(file, capsys):
    assert main([str(file), "--axes", "data=2,tensor=4", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {
        "name": "r",
        "kind": "all-reduce",
        "axes": "tensor",
        "network": "ici",
        "form": "sync",
        "scope": "layer.mlp.down",
        "origin": "not recorded",
        "changes": [],
        "dtype": "f32",
        "groups": [[0, 1, 2, 3], [4, 5, 6, 7]],
        "executions": 1,
        "executions_are": "exact",
        "payload_bytes": 400,
        "wire_bytes": 600,
        "step_wire_bytes": 600,
        "source_line": "m.py:3",
        "op_name": "jit(f)/layer.mlp.down/psum",
        "inferred": [],
        "line": 11,
        "caller": None,
    }


def test_a_gzipped_file_and_a_mesh_name_do_as_well(tmp_path, capsys):
    path = tmp_path / "program.hlo.gz"
    path.write_bytes(gzip.compress(TEXT.encode(), mtime=0))
    assert main([str(path), "--mesh", "tp4dp2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["axes"] == "tp"


def test_without_axes_the_axes_are_unknown_and_a_hint_says_why(file, capsys):
    main([str(file), "--json"])
    printed = capsys.readouterr()
    assert json.loads(printed.out)[0]["axes"] == "?"
    assert "--axes" in printed.err
    assert len(printed.err.splitlines()) == 1
    main([str(file)])
    printed = capsys.readouterr()
    assert "--axes" in printed.out.splitlines()[-1]
    assert "--mesh" in printed.out.splitlines()[-1]
    assert printed.err == ""


@pytest.mark.parametrize(
    ("axes", "read", "hint"),
    [
        # Groups of four neighbours: of an axis of eight a part, and of `2,4` in the other order none.
        ("x=8", "x:sub", "Axis:sub are groups inside one axis. Are the axes whole, and in order"),
        ("tensor=4,data=2", "?", "? are groups of none of these axes. Are the axes whole, and in order"),
    ],
)
def test_axes_that_are_not_the_program_s_are_asked_about(file, capsys, axes, read, hint):
    assert main([str(file), "--axes", axes, "--json"]) == 0
    printed = capsys.readouterr()
    assert [row["axes"] for row in json.loads(printed.out)] == [read]
    assert hint in printed.err
    assert main([str(file), "--axes", axes, "--json", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_with_the_program_s_axes_there_is_no_hint(file, capsys):
    main([str(file), "--axes", "data=2,tensor=4", "--json"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("data", [TEXT.encode(), gzip.compress(TEXT.encode(), mtime=0)], ids=["text", "gzip"])
def test_a_dash_reads_standard_input(data):
    command = [sys.executable, "-m", "compare.hlo", "-", "--axes", "a=2,b=4", "--json"]
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    assert [row["name"] for row in json.loads(done.stdout)] == ["r"]
    bad = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert bad.returncode == 2
    assert bad.stderr.startswith(b"error: standard input: ")


def test_without_json_it_is_a_table_of_at_most_100_columns(file, capsys):
    main([str(file), "--axes", "data=2,tensor=4"])
    printed = capsys.readouterr().out
    assert "layer.mlp.down" in printed
    assert "all-reduce over tensor" in printed
    assert "600 B" in printed
    assert "m.py:3" in printed
    assert max(map(len, printed.splitlines())) <= 100
    assert printed.rstrip().endswith("1 collective moves 600 B a step, mean over devices.")


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (None, (), "No such file"),
        (b"", (), "empty"),
        (TEXT[:-3].encode(), (), "cut"),
        (TEXT.partition("ENTRY")[0].encode(), (), "cut"),
        (gzip.compress(TEXT.encode(), mtime=0)[:60], (), "cut"),
        (b"\x7fELF\x00\x01\xff\xfe", (), "binary"),
        (b"ML\xefR\x01", (), "StableHLO"),
        (b"module @jit_f {\n}\n", (), "StableHLO"),
        (b"import this\n", (), "not HLO text"),
        (TEXT.encode(), ("--axes", "tensor=6"), "6 devices"),
        (TEXT.encode(), ("--axes", "tensor"), "data=2,tensor=4"),
        (TEXT.encode(), ("--mesh", "qq8"), "qq"),
        (TEXT.encode(), ("--mesh", "tp8", "--axes", "a=8"), "not allowed"),
        (TEXT.replace("{{0,1,2,3},{4,5,6,7}}", "all of them").encode(), (), "line 11"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, content, options, said):
    path = tmp_path / "program.hlo"
    if content is not None:
        path.write_bytes(content)
    done = run_here("hlo", path, *options)
    check_refusal(done, said)


BEFORE = """HloModule jit_f, entry_computation_layout={(f32[64,64]{1,0})->f32[64,64]{1,0}}

ENTRY main.1 {
  x.1 = f32[64,64]{1,0} parameter(0), sharding={replicated}
  y.1 = f32[64,64]{1,0} parameter(1), sharding={devices=[2,4]<=[8]}, frontend_attributes={a="b"}
  dot_general.1 = f32[64,64]{1,0} dot(x.1, y.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT sharding_constraint.1 = f32[64,64]{1,0} custom-call(dot_general.1), custom_call_target="Sharding", sharding={replicated}
}
"""  # noqa: E501


@pytest.mark.parametrize("header", ["", ", num_partitions=8"])
def test_a_program_before_the_partitioner_is_refused_and_not_said_to_move_nothing(tmp_path, header):
    path = tmp_path / "before.hlo"
    path.write_text(BEFORE.replace("jit_f", "jit_f" + header, 1))
    done = run_here("hlo", path)
    check_refusal(done, "before the partitioner (line 5")
    assert "compile().as_text()" in done.stderr


MANUAL = """HloModule jit_g, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=8]>}}

add.1 {
  x.1 = f32[] parameter(0)
  y.1 = f32[] parameter(1)
  ROOT add.2 = f32[] add(x.1, y.1)
}

ENTRY main.1 {
  x.2 = f32[64,64]{1,0} parameter(0), sharding={devices=[8,1]<=[8]}
  sum.1 = f32[64,64]{1,0} all-reduce(x.2), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, \
use_global_device_ids=true, to_apply=add.1
  ROOT y.2 = f32[64,64]{1,0} add(sum.1, x.2)
}
"""
"""One collective that its author wrote; the partitioner will add others."""


@pytest.mark.parametrize(
    ("was", "now", "line"),
    [
        ("", "", 1),  # Shardy's mesh
        (', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=8]>}}', "", 10),  # a split parameter alone
        (
            ', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=8]>}}\n',
            ", num_partitions=8\n",
            None,
        ),  # a partitioned module's parameters keep their shardings
    ],
)
def test_a_program_with_a_collective_of_its_own_is_refused_before_the_partitioner(tmp_path, was, now, line):
    path = tmp_path / "manual.hlo"
    path.write_text(MANUAL.replace(was, now, 1) if was else MANUAL)
    done = run_here("hlo", path)
    if line is None:
        assert (done.returncode, done.stderr) == (0, "")
        return
    assert (done.returncode, done.stdout) == (2, "")
    assert f"before the partitioner (line {line} says how something is to be split)" in done.stderr
    assert "compare.collectives(FILE" in done.stderr


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("{devices=[2,4]<=[8]}", "{replicated}"),
        ("{devices=[2,4]<=[8]}", "{maximal device=3}"),
        ("{devices=[2,4]<=[8]}", "{{replicated}, {manual}}"),
        ("{devices=[2,4]<=[8]}", "{devices=[1,1,8]<=[8] last_tile_dim_replicate}"),
        ("HloModule jit_f", "HloModule jit_f, is_scheduled=true"),  # a compiled program's parameters keep theirs
    ],
)
def test_a_program_that_splits_nothing_or_is_compiled_moves_nothing(tmp_path, capsys, was, now):
    path = tmp_path / "program.hlo"
    path.write_text(BEFORE.replace(was, now, 1))
    assert main([str(path)]) == 0
    assert "0 collectives" in capsys.readouterr().out


def test_a_folder_is_no_file(tmp_path):
    check_refusal(run_here("hlo", tmp_path), "")


def test_a_run_folder_has_a_table_of_each_default_program(capsys):
    assert main([str(ROOT / "docs/example-run"), "--arm", "jax"]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("jax/")] == ["jax/decode/tpu:", "jax/prefill/tpu:"]
    assert printed.count("Note: mesh pp2tp4 on v5e:2x4, axes pp=2,tp=4.") == 2
    assert main([str(ROOT / "docs/example-run"), "--arm", "jax", "--json"]) == 0
    by_program = json.loads(capsys.readouterr().out)
    assert list(by_program) == ["jax/decode/tpu", "jax/prefill/tpu"]
    # One program of it is named by its folder, as compare.diff takes it.
    assert main([str(ROOT / "docs/example-run/jax/decode/tpu"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == by_program["jax/decode/tpu"]
    with pytest.raises(WorkError, match=r"has no program jax/train/tpu that was compiled; it has jax/decode/tpu, "):
        main([str(ROOT / "docs/example-run"), "--arm", "jax", "--phase", "train"])


def test_what_belongs_to_a_run_and_what_to_a_program_is_said(file, capsys):
    for words, said in (
        ((str(file), "--arm", "jax"), "--framework, --phase and --variant belong to a run folder"),
        ((str(ROOT / "docs/example-run"), "--mesh", "tp8"), "run folders record their mesh and scopes"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(list(words))
        assert said in capsys.readouterr().err
