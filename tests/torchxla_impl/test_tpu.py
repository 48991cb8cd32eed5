"""The compiled TPU program: entry as declared, placeholders as real tensors, scan as a loop, the plan's bytes."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import pytest

from compare.contract.reference_algorithms import required_rows
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.run.tasks import COMPILER_SOURCES
from compare.verdict.verdict import judge
from meshes.case import Case
from tests.kept import describe, fill
from tests.laws.workers import FAILED, run
from tests.planted.programs import Job, make
from tests.torchxla_impl.workers import ENVIRONMENT
from tests.torchxla_impl.workers import run as run_worker
from tests.xla_flags import quick_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("libtpu") is None, reason="libtpu is not installed"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A compiled TPU program, and what its twin said of it."""

    case: Case
    text: str
    about: dict[str, Any]

    @classmethod
    def read(cls, case: Case, folder: Path) -> "Program":
        failed = folder / FAILED
        assert not failed.exists(), failed.read_text()
        text = gzip.decompress((folder / "optimized.hlo.gz").read_bytes()).decode()
        return cls(case=case, text=text, about=json.loads((folder / "about.json").read_text()))

    @property
    def rows(self) -> list[Collective]:
        return collectives(read(self.text), self.case.mesh.axes, contract=required_rows(self.case))


def small(mesh: str, **words: Any) -> Case:
    """A model of the catalog with its heads and experts, but narrow, of two layers and 256 tokens.

    tests/laws/tables/real.toml compiles a model at its own size.
    """
    case = Case.read(mesh, seq=256, **words)
    widths = {name: min(getattr(case.model, name), 512) for name in ("embed", "ffn", "expert_ffn", "shared_ffn")}
    return case.at(model=replace(case.model, layers=2, vocab=2048, head_dim=32, **widths))


def entry_shapes(text: str) -> list[str]:
    """Of the parameters and results, as one device holds them, with their layouts."""
    header = text[: text.index("\n")]
    return re.findall(r"[a-z]+\d+\[[\d,]*\]", header[header.index("entry_computation_layout") :])


def kinds(rows: list[Collective]) -> Counter[tuple[Any, ...]]:
    """How often each collective runs in a step."""
    counted: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        assert row.executions is not None
        counted[row.kind, row.axes, row.scope, row.dtype, row.payload_bytes, row.groups] += row.executions
    return counted


Programs = Callable[[Case], Program]


@pytest.fixture(scope="module")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """A case's program; those of all tests that were chosen are made together when the first one asks.

    The start of PyTorch/XLA and of libtpu costs more than a program.
    """
    items = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    cases = [case for item in items for case in item.callspec.params["cases"]]
    folders = make([Job("torchxla", case) for case in cases], tmp_path_factory.mktemp("programs"))
    return lambda case: Program.read(case, folders[Job("torchxla", case).key])


def with_data(mesh: str) -> Case:
    """Small enough to have its weights on eight virtual devices."""
    case = Case.read(mesh, phases=("prefill",), seq=128)
    return case.at(model=replace(case.model, layers=2, vocab=4096, embed=1024, ffn=2048, head_dim=32))


WITH_DATA = tuple(with_data(mesh) for mesh in ("dp2tp4", "tp4pp2"))


@pytest.mark.parametrize("cases", [WITH_DATA], ids=["dp2tp4 and tp4pp2"])
def test_placeholders_make_the_program_of_tensors_with_data(
    cases: tuple[Case, ...], programs: Programs, tmp_path: Path
) -> None:
    """`mark_sharding` on real tensors and the runtime's own door: the same entry, the same collectives."""
    folders = [tmp_path / str(number) for number in range(len(cases))]
    for folder, case in zip(folders, cases, strict=True):
        folder.mkdir()
        (folder / "case.json").write_text(case.to_json())
        (folder / "about.json").write_text(json.dumps(programs(case).about))
        describe(
            folder, "torchxla_impl", *COMPILER_SOURCES, "tests/torchxla_impl/marked.py", "tests/planted/compiling.py"
        )
    fill(folders, compile_marked, results=("optimized.hlo.gz",))
    for folder, case in zip(folders, cases, strict=True):
        ours, theirs = programs(case), Program.read(case, folder)
        assert entry_shapes(ours.text) == entry_shapes(theirs.text)
        assert kinds(ours.rows) == kinds(theirs.rows)
        assert len(ours.rows) >= 5


def compile_marked(folders: Sequence[Path]) -> None:
    done = run_worker(
        [str(Path(__file__).with_name("marked.py")), *map(str, folders)], environment=quick_environment() | ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    run("tests.planted.compiling", folders=folders)


def both_loops(mesh: str, phase: str) -> tuple[Case, Case]:
    case = Case.read(mesh, model_name="tiny", phases=(phase,), seq=128)
    return case.at(loop="scan"), case.at(loop="unrolled")


@pytest.mark.parametrize(
    "cases", [both_loops("dp2tp4", "prefill"), both_loops("tp4pp2", "decode")], ids=["dp2tp4-prefill", "tp4pp2-decode"]
)
def test_a_scan_has_the_collectives_of_a_loop_written_out(cases: tuple[Case, Case], programs: Programs) -> None:
    """Layer by layer and tick by tick: the same bytes, the same number of times; gathers of attention among them."""
    scan, unrolled = map(programs, cases)
    assert kinds(scan.rows) == kinds(unrolled.rows)
    (down,) = (row for row in scan.rows if row.scope == "layer.mlp.down")
    # 4 layers; of two stages each runs 2 in each of 4 + 2 - 1 ticks.
    trips = [4] if scan.case.mesh.pp == 1 else [5, 2]
    assert [loop.trip_count for loop in down.loops if loop.trip_count != 1] == trips
    assert {row.scope for row in scan.rows} >= {"layer.attention.core", "layer.attention.out", "layer.mlp.down"}


def judge_case(program: Program) -> list[Any]:
    roles = {row["index"]: row["role"] for row in program.about["parameters"]}
    contract = required_rows(program.case)
    judgement = judge(program.rows, contract, axes=program.case.mesh.axes, roles=roles)
    assert [row.step_wire_bytes for row in contract] == list(judgement.served_bytes)
    return list(judgement.verdicts)


MOVED: tuple[tuple[str, str, str, set[str]], ...] = (
    ("tp8", "decode", "llama-3.1-8b", set()),
    ("dp2pp2tp2", "prefill", "llama-3.1-8b", {"bubble", "replicated"}),
    # The part of a sequence that is not the last samples, too.
    ("cp4tp2", "prefill", "llama-3.1-8b", {"replicated"}),
    ("pp2ep4", "decode", "mixtral-8x7b", {"bubble", "replicated"}),
    # The last token of a split sequence is made whole by a sum, where a gather would do.
    ("ep4tp2+sp", "prefill", "qwen1.5-moe-a2.7b", {"replicated"}),
)


def moved(mesh: str, phase: str, model: str) -> Case:
    return small(mesh, phases=(phase,), attention="einsum", batch=16, model_name=model)


@pytest.mark.parametrize(
    ("cases", "allowed"),
    [((moved(*row),), allowed) for *row, allowed in MOVED],
    ids=[" ".join(row[:2]) for row in MOVED],
)
def test_attention_as_einsum_moves_what_the_plan_needs(
    cases: tuple[Case], allowed: set[str], programs: Programs
) -> None:
    """Nothing induced, nothing missing; a pipeline adds its bubble, and what every stage and every part does alike."""
    verdicts = judge_case(programs(*cases))
    assert {cause for verdict in verdicts for cause in verdict.causes} == allowed
    assert sum(verdict.induced_bytes for verdict in verdicts) == 0


@pytest.mark.parametrize("cases", [(moved("cp4tp2", "prefill", "llama-3.1-8b"),)], ids=["cp4tp2"])
def test_all_keys_and_values_are_gathered_where_cp_splits_a_prompt(cases: tuple[Case], programs: Programs) -> None:
    """In the place of a ring: by hand, 16 sequences of 256 of 4 KV heads of 32, keys and values, in 2 layers."""
    program = programs(*cases)
    gathers = {(row.kind, row.scope, row.payload_bytes, row.executions) for row in program.rows if row.axes == "cp"}
    assert gathers == {
        ("all-gather", "layer.attention.core", 16 * 256 * 4 * 32 * 2, 2),
        ("all-reduce", "pipeline.collect", 16 * 4, 1),
    }


@pytest.mark.parametrize("cases", [(small("cp4tp2", phases=("decode",), attention="einsum"),)], ids=["cp4tp2"])
def test_a_split_cache_is_merged_and_not_gathered(cases: tuple[Case], programs: Programs) -> None:
    """By hand, of 8 tokens of 16 heads: the highest score and the sum in f32, the values of 32 in the case's bf16."""
    program = programs(*cases)
    counts = Counter(
        (row.kind, row.scope, row.dtype, row.payload_bytes, row.executions) for row in program.rows if row.axes == "cp"
    )
    assert counts == {
        ("all-reduce", "layer.attention.core", "f32", 8 * 16 * 4, 2): 2,
        ("all-reduce", "layer.attention.core", "bf16", 8 * 16 * 32 * 2, 2): 1,
    }


@pytest.mark.parametrize("cases", [(small("dp2tp4", phases=("prefill",)),)], ids=["dp2tp4"])
def test_the_attention_call_gathers_q_k_and_v_in_every_layer(cases: tuple[Case], programs: Programs) -> None:
    """The finding, by hand: 4 sequences of 256 on each dp rank; k is gathered before it is repeated, v after."""
    program = programs(*cases)
    induced = [verdict.collective for verdict in judge_case(program) if verdict.induced_bytes]
    assert {(row.kind, row.axes, row.scope, row.dtype, row.executions) for row in induced} == {
        ("all-gather", "tp", "layer.attention.core", "bf16", 2)
    }
    head = 4 * 256 * 32 * 2
    assert sorted(row.payload_bytes for row in induced) == [8 * head, 32 * head, 32 * head]


@pytest.mark.parametrize("cases", [(Case.read("dp2pp2tp2", model_name="tiny", phases=("decode",)),)], ids=["dp2pp2tp2"])
def test_entry_parameters_are_sharded_overwritten_and_named_as_declared(cases: tuple[Case], programs: Programs) -> None:
    (case,) = cases
    program = programs(case)
    about = program.about
    declared = [f"{row['dtype']}[{local_shape(row, case)}]" for row in [*about["parameters"], *about["outputs"]]]
    assert entry_shapes(program.text) == declared
    aliases = re.findall(r"\{(\d)\}: \((\d+), \{\}", program.text.split("entry_computation_layout")[0])
    caches = {row["name"]: str(row["index"]) for row in about["parameters"] if row["role"] == "cache"}
    assert aliases == [("1", caches["cache.k"]), ("2", caches["cache.v"])]
    for row in about["parameters"]:
        line = re.search(rf" parameter\({row['index']}\).*", program.text[program.text.index("\nENTRY") :])
        assert line is not None
        assert f'op_name="{row["name"]}"' in line[0]
    lines = {row.scope: row.source_line for row in program.rows}
    assert lines["layer.attention.out"] == source_line("decoder/attention.py", 'einsum("zbshk,zhkd->zbsd"')
    assert lines["layer.mlp.down"] == source_line("decoder/layers.py", 'einsum("zbsf,zfd->zbsd"')
    assert lines["embed"] == source_line("sharding/layout.py", "F.embedding(")


def local_shape(row: dict[str, Any], case: Case) -> str:
    """What one device holds."""
    ways = [prod(case.mesh.axes[axis] for axis in axes.split(",")) if axes else 1 for axes in row["axes"]]
    return ",".join(str(n // parts) for n, parts in zip(row["shape"], ways, strict=True))


def source_line(file: str, text: str) -> str:
    """Where this stands in the twin."""
    path = Path(__file__).parents[2] / "torchxla_impl" / file
    (number,) = (at for at, line in enumerate(path.read_text().splitlines(), start=1) if text in line)
    return f"torchxla_impl/{file}:{number}"
