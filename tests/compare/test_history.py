import json
import shutil

import pytest

from compare.cli.history import main
from compare.diff.own.api import collectives
from compare.history.lineage_query import History
from compare.history.print_history import print_life
from compare.passes.lineage import CREATED, Event, Track
from compare.run.errors import WorkError
from compare.run.folder.load_run import judge_run, read_run
from meshes.case import Case
from tests.compare.verdict.toy_hlo import AXES, SUM, program
from tests.places import RECORDED as RECORDED_PASSES

RECORDED = RECORDED_PASSES / "ring"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder of one program: the ring of a tiny model on cp4tp2."""
    folder = tmp_path_factory.mktemp("run")
    cell = folder / "jax/prefill/tpu"
    cell.mkdir(parents=True)
    for path in RECORDED.iterdir():
        shutil.copy(path, cell)
    (cell / "about.json").write_text(json.dumps({"status": "ok", "partitioner": "shardy"}))
    (folder / "case.json").write_text(Case.read("cp4tp2", model_name="tiny", phases=("prefill",)).to_json())
    return folder


@pytest.fixture(scope="module")
def recorded(run):
    """As JSON, by the name of the collective."""
    rows = judge_run(read_run(run)).programs[0].rows
    return {row.name: row for row in rows}


def test_all_collectives_are_listed_with_who_put_them_there(run, recorded, capsys):
    assert main([str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "jax/prefill/tpu"
    for name, row in recorded.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert row.origin in line
    assert {row.origin for row in recorded.values()} == {"program", "partitioner"}


def test_the_life_of_a_permute_of_the_ring_begins_in_the_program(run, recorded, capsys):
    name = next(name for name, row in recorded.items() if row.origin == "program")
    assert main([str(run), "--name", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name} of jax/prefill/tpu: collective-permute over cp in layer.attention.core")
    assert "1. in the program from the framework" in text
    assert "tpu_async_collective_creator: made async" in text
    assert "«" in text
    assert "»" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_life_of_the_partitioner_s_shows_what_it_was_put_there_for(run, recorded, capsys):
    name = next(name for name, row in recorded.items() if row.scope == "layer.mlp.down")
    assert main([str(run), "--name", name, "--json"]) == 0
    (life,) = json.loads(capsys.readouterr().out)
    assert (life["origin"], life["kind"], life["axes"]) == ("partitioner", "all-reduce", "tp")
    first = life["events"][0]
    assert (first["pass"], first["what"]) == ("tpu-spmd-partitioning", "created")
    assert any(" dot(" in line and "layer.mlp.down" in line for line in first["before"])
    assert " all-reduce(" in first["after"]


def test_a_name_that_is_not_there_is_refused_with_those_that_are_like_it(run):
    with pytest.raises(WorkError, match=r"no collective is named 'all-reduce\.99'; there are all-reduce"):
        main([str(run), "--name", "all-reduce.99"])
    with pytest.raises(WorkError, match="has no program torchxla/"):
        main([str(run), "--arm", "torchxla"])


def test_a_run_without_passes_says_so(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    (other / "jax/prefill/tpu/passes.tar.xz").unlink()
    with pytest.raises(WorkError, match="the passes of jax/prefill/tpu are not recorded"):
        main([str(other)])
    rows = judge_run(read_run(other)).programs[0].rows
    assert {row.origin for row in rows} == {"not recorded"}


def test_a_damaged_archive_leaves_the_rest_and_says_so(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    (other / "jax/prefill/tpu/passes.tar.xz").write_bytes(b"no archive")
    cell = judge_run(read_run(other)).programs[0]
    assert {row.origin for row in cell.rows} == {"not recorded"}
    assert "cut or damaged" in cell.why_no_lineage


def test_a_name_may_be_how_several_begin(run, recorded, capsys):
    wanted = "all-reduc"
    assert main([str(run), "--name", wanted]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines[1:-1] if not line.startswith(" ")]
    assert listed == [name for name in recorded if name.startswith(wanted)]
    assert lines[-1] == f"--name {listed[0]} shows one of them, pass by pass."


def test_of_a_combined_collective_what_each_member_says_alike_is_said_once(capsys):
    """libtpu joins three sums: each was created alike, and the merge is one event of all three."""
    created = Event(at=0, span="spmd", what=CREATED, before=("d = f32[4] dot(a, b)",), after="r = f32[4] all-reduce(d)")
    merged = Event(
        at=1,
        span="combiner",
        what="merged",
        before=("r = f32[4] all-reduce(d)",) * 3,
        after="r = (f32[4], f32[4], f32[4]) all-reduce(d, d, d)",
    )
    row = collectives(program(SUM), axes=AXES)[0]
    track = Track(origin="partitioner", events=(created, created, created, merged))
    print_life(History(arm="a", phase="", cell="", row=row, track=track))
    printed = capsys.readouterr().out
    assert printed.count("spmd: created") == 1
    assert printed.count("all-reduce(d)") == 2
    assert "2. combiner: merged" in printed
