"""The readers under test: valid inputs of each, how these are mutated, and what a reading must satisfy."""

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.fuzz import doors, hlo, mutate, xla
from benchmarks.fuzz.findings import Wrong
from compare.chakra.reader import build_trace, read_folder
from compare.chakra.settings import read_settings
from compare.compile.rematerialised import find_rematerialised
from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.event_names import container_names, map_event_names
from compare.hlo.collectives.single_line import read_line
from compare.hlo.devices.axes import read_axes
from compare.hlo.devices.tiles import spell_split
from compare.hlo.proto import program
from compare.hlo.text.files import read_file
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import read
from compare.metrics.meters import summarize_files
from compare.network.astra_sim.program import replay_graph
from compare.network.machines.collective import Collective
from compare.network.machines.machine_file import read_machine
from compare.network.native.times import time_collective
from compare.passes import archive, snapshot
from compare.profile.chrome.columns import read_events
from compare.profile.chrome.events import read_file as read_trace_file
from compare.profile.join import profile
from compare.profile.join.carried_programs import read_protos
from compare.profile.power.files import read_power
from compare.profile.xplane.reader import read_file as read_profile
from compare.remedy.page import sections
from compare.report.model.report import Report
from compare.run.cache import MANIFEST, Cache, file_digest
from compare.run.folder.load_run import judge_run, read_run
from compare.sweep.combination import Combination
from compare.sweep.render.draw import page as sweep_page
from compare.sweep.render.draw import programs as sweep_table
from compare.sweep.render.figure import draw_ratios
from compare.sweep.render.print_sweep import print_sweep
from compare.sweep.sweep import CaseEnd, read_result
from compare.sweep.sweep_report import build_summary, earlier_rows, result_row
from compare.user_program.advice.advise import advise
from compare.user_program.repeated_work import repeated_work
from meshes.case import Case
from meshes.checkpoint.config import model_of, read_model
from meshes.checkpoint.converted import WEIGHTS, ConvertedCheckpoint
from meshes.checkpoint.safetensors import entries
from meshes.mesh_argument import SPECS, read_mesh
from meshes.process.documents import read_json
from meshes.weights import weights
from tests.compare.chakra import files
from tests.compare.profile.chrome.traces import Trace, all_reduce
from tests.compare.timeline.spaces import Space, tpu

ROOT = Path(__file__).parent.parent.parent
_CORPUS = ROOT / "tests/compare/hlo/corpus"
_RUN = ROOT / "docs/example-run"


@dataclass(frozen=True, slots=True)
class Reader:
    """One reader: an input is a mutation of one of its seeds."""

    name: str
    share: int
    """Of a hundred thousand inputs."""
    seeds: Callable[[], Sequence[Any]]
    make: Callable[[Any, random.Random], Any]
    read: Callable[[Any, Path], object]


@dataclass(frozen=True, slots=True)
class _Text:
    """An HLO text; if only bystanders are damaged, with the rows that it must have."""

    text: str
    axes: str
    places: tuple[int, ...] = ()
    rows: Any = None


@cache
def _texts() -> tuple[_Text, ...]:
    texts = []
    for path in sorted(_CORPUS.glob("*.json")):
        text = gzip.decompress(path.with_suffix(".hlo.gz").read_bytes()).decode()
        if len(text) < 16_000:
            axes = json.loads(path.read_text())["axes"]
            rows = hlo.comparable_columns(collectives(read(text), read_axes(axes)))
            texts.append(_Text(text, axes, tuple(hlo.find_bystanders(text)), rows))
    return tuple(texts)


def _lines() -> list[str]:
    return [line for text in _texts() for line in text.text.split("\n") if " = " in line]


def _anywhere(seed: _Text, rng: random.Random) -> _Text:
    return _Text(mutate.text(seed.text, rng), seed.axes if rng.random() < 0.8 else "")


def _beside(seed: _Text, rng: random.Random) -> _Text:
    return _Text(hlo.damage_beside(seed.text, seed.places, rng), seed.axes, rows=seed.rows)


def _read_hlo(given: _Text, _: Path) -> object:
    module = read(given.text)
    rows = collectives(module, read_axes(given.axes) if given.axes else {})
    if wrong := hlo.describe_loss(given.text, rows):
        raise Wrong(wrong)
    if given.rows is not None and hlo.comparable_columns(rows) != given.rows:
        raise Wrong("other rows, where no collective was touched")
    return map_event_names(module, rows), container_names(module)


def _read_named(given: _Text, _: Path) -> object:
    """With a scope map, which is searched in the stacks, too; and what is told of the work and of remedies."""
    module = read(given.text)
    names = SourceNames.of({r"\.py:1\d": "embed", "dot_general": "head", "f": "norm"})
    rows = collectives(module, read_axes(given.axes) if given.axes else {}, names=names)
    return rows, repeated_work(module, module, axes={"a": 2}, names=names), list(advise(rows, module))


def _read_warnings(given: str, _: Path) -> object:
    found = find_rematerialised(given)
    return [spell_split(each[side], axes={"a": 2, "b": 4}) for each in found for side in ("before", "after")]


@cache
def _counted_texts() -> tuple[_Text, ...]:
    return tuple(replace(text, rows=xla.count_rows(text.text, text.axes)) for text in _texts())


def _of_communication(seed: _Text, rng: random.Random) -> _Text:
    """One damage beside what is sent, where a change of rows says that it matters; or any."""
    if rng.random() < 0.25:
        return _anywhere(seed, rng)
    return replace(seed, text=hlo.damage_communication(seed.text, rng))


def _hold_against_xla(given: _Text, _: Path) -> object:
    return xla.hold_against_xla(given.text, given.axes, before=given.rows)


def _read_proto(given: bytes, _: Path) -> object:
    program.read_device_assignment(given)
    text = program.write_hlo_text(given)
    rows = collectives(read(text), {})
    if wrong := hlo.describe_loss(text, rows):
        raise Wrong(wrong)
    return rows


def _in_file(name: str, reader: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Of a reader of files: the input in a file of this name."""

    def written(given: bytes | str, folder: Path) -> object:
        path = folder / name
        path.write_bytes(given if isinstance(given, bytes) else given.encode(errors="surrogatepass"))
        return reader(path)

    return written


def _archive() -> bytes:
    folder = Path(tempfile.mkdtemp())
    for name in ("before_optimizations", "0003.a.after_x.before_y", "0004.a.after_y.before_z"):
        (folder / f"module_0000.jit_f.{name}.txt").write_text(_texts()[0].text)
    return archive.pack(folder, strip=str)


def _read_archive(given: bytes, _: Path) -> object:
    return [snapshot.read_snapshot(dump.text) for dump in archive.unpack(given)]


def _profiles() -> list[bytes]:
    small = Space()
    for device in range(2):
        line = "%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %fusion.2), replica_groups={{0,1}}"
        ops = [("%fusion.2 = f32[8] fusion()", 0, 9), (line, 9, 4), ("while.3", 0, 20)]
        tpu(small, device, ops, Steps=[("0", 0, 30)], XLA_Modules=[("jit_f(17)", 0, 25, {"stats": {"run_id": 3}})])
    small.plane("/host:CPU").line("python").event("step", 5, 900, stats={"step_num": 0})
    with_program = Space(list(small.planes))
    with_program.programs({"jit_f(17)": min(_protos(), key=len)})
    return [small.serialized(), with_program.serialized()]


@cache
def _protos() -> list[bytes]:
    profile = ROOT / "tests/compare/profile/profiles/jax.xplane.pb.gz"
    return sorted(read_protos([read_profile(profile)]).values(), key=len)[:4]


def _read_trace(path: Path) -> object:
    return profile.read_profile([path], axes={"tp": 2})


def _trace() -> list[str]:
    """Two devices with a step each, and a host: words and numbers as XLA's profiler writes them."""
    trace = Trace()
    for device in range(2):
        trace.step(device, 0, 0, 10)
        trace.module(device, 0, 10)
        trace.op(device, "fusion.2", 0, 6, "loop fusion", bytes_accessed="4096", tf_op="jit(f)/mul", run_id="3")
        trace.op(device, "all-reduce.1", 6, 3, "all-reduce", long_name=all_reduce(1, 1000, "{{0,1}}"))
    trace.host("step", 0, 11, step_num="0")
    return [trace.text()]


def _read_chrome_trace(path: Path) -> object:
    """A timeline; each event with a time and a duration is in it, or counted among those that were left out."""
    try:
        events = read_events(read_trace_file(path))
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):  # no JSON for Python, which reads less than what was read, or none
        return _read_trace(path)
    listed = document["traceEvents"] if isinstance(document, dict) else document
    timed = [event for event in listed if isinstance(event, dict) and event.get("ph") == "X" and _is_timed(event)]
    left_out = sum(int(note.split()[0]) for note in events.notes)
    if len(events.kind) + left_out < len(timed):
        raise Wrong(f"{len(timed)} events have a time; {len(events.kind)} were read, {left_out} counted as left out")
    return _read_trace(path)


def _is_timed(event: dict[str, Any]) -> bool:
    return all(type(event.get(name)) in (int, float) and 0 <= event[name] < 1e15 for name in ("ts", "dur"))


_SAMPLES = "1757000000.5,100\n1757000001.5,-1\n1757000002,120.5\n"
_ZEUS_LOG = "start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy\n1757000000.5,prefill,2.0,200.0,400.0\n"
_MEASUREMENT = '{"time": 2.0, "gpu_energy": {"0": 100.0}, "cpu_energy": {"0": 1.0}, "dram_energy": null}'


def _measured_power(path: Path) -> object:
    return summarize_files(read_power(path))


def _time_on_machine(path: Path) -> object:
    return time_collective(read_machine(path), Collective(kind="all-reduce", num_bytes=4096))


_NETWORK = "topology: [ Ring, Switch ]\nnpus_count: [ 2, 2 ]\nbandwidth: [ 90.5, 1e3 ]\nlatency: [ 1000.0, 5 ]\n"
_SYSTEM = json.dumps(
    {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 10,
        "active-chunks-per-dimension": 2,
        "preferred-dataset-splits": 2,
        "collective-optimization": "localBWAware",
        "local-mem-bw": 50.5,
        "roofline-enabled": 0,
        **{
            f"{kind}-implementation": ["ring", "direct1"]
            for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
        },
    }
)


def _rank_nodes(rank: int) -> list[bytes]:
    """A rank of four that computes, takes part in collectives of two kinds, and sends to another or receives."""
    other = rank ^ 1
    message = files.send(4, other, 9, 512, deps=[2]) if rank % 2 else files.receive(4, other, 9, 512, deps=[2])
    nodes = [files.compute(1, 5), files.collective(2, 0, 4096, deps=[1]), message]
    return [*nodes, files.collective(7, 2, 64, group="1", deps=[1, 2, 4])] if rank < 2 else nodes


def _chakra() -> list[bytes]:
    """Rank 1."""
    with tempfile.TemporaryDirectory() as folder:
        files.write_file(Path(folder) / "a.et", _rank_nodes(1))
        return [(Path(folder) / "a.et").read_bytes()]


def _play_trace(path: Path) -> object:
    """A trace of four ranks and what stands beside it, of which one file was damaged, in ASTRA-sim's cycles."""
    folder, given = path.parent, path.read_bytes()
    files.write_trace(folder, [_rank_nodes(rank) for rank in range(4)], groups={"1": [0, 1]})
    (folder / "network.yml").write_text(_NETWORK)
    (folder / "system.json").write_text(_SYSTEM)
    (folder / "run.txt").unlink(missing_ok=True)
    (folder / "memory.json").write_text(doors.MEMORY)
    path.write_bytes(given)
    doors.simulate_natively(folder)
    trace = build_trace(read_folder(folder))
    settings = read_settings(folder, num_ranks=4)
    return replay_graph(trace.graph, settings.machine, tick_ps=1000, unnamed=trace.unnamed, options=settings.options)


def _cell(path: Path) -> object:
    """A run folder with one program, whose about.json was damaged."""
    folder = path.parent / "run"
    cell = folder / "jax" / "prefill" / "tpu"
    cell.mkdir(parents=True, exist_ok=True)
    (folder / "case.json").write_bytes((_RUN / "case.json").read_bytes())
    (cell / "about.json").write_bytes(path.read_bytes())
    (cell / "optimized.hlo.gz").write_bytes((_RUN / "jax/prefill/tpu/optimized.hlo.gz").read_bytes())
    statuses = {program.result.key: program.result.status for program in judge_run(read_run(folder)).programs}
    return statuses["jax", "prefill", "tpu"]


def _config() -> list[str]:
    names = {
        "model_type": "llama",
        "vocab_size": 128,
        "hidden_size": 64,
        "intermediate_size": 96,
        "head_dim": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 512,
        "tie_word_embeddings": False,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    }
    model_of(names, name="seed")
    return [json.dumps(names)]


def _tensors(given: str, folder: Path) -> object:
    header = given.encode(errors="surrogatepass")
    path = folder / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(24))
    return entries(path)


def _entry(given: str, folder: Path) -> object:
    """A cache entry with a damaged manifest: it is rebuilt, and never stops a run."""
    entry = folder / "compiled" / "key"
    entry.mkdir(parents=True, exist_ok=True)
    (folder / "begun").mkdir(exist_ok=True)
    (entry / "a.txt").write_text("a")
    (entry / MANIFEST).write_bytes(given.encode(errors="surrogatepass"))
    return Cache(folder).find("compiled", "key")


def _remedies(path: Path) -> object:
    """A run folder with what a search for remedies left, which `compare.report` shows."""
    return sections(path.parent)


@cache
def _sweep() -> tuple[str, ...]:
    """The sweep.json of one case, whose run folder is the example run."""
    case, report = Case.from_json((_RUN / "case.json").read_text()), Report.from_json(read_json(_RUN / "report.json"))
    combination = Combination(model=case.model.name, mesh=case.mesh.name, case=case)
    results = [result_row(combination, status="done", folder="run", report=report)]
    return (json.dumps(build_summary(results, asked={"batch": 8}, arms=list(report.arms))),)


def _earlier(path: Path) -> object:
    """The sweep of another case into the folder of an earlier one: all that it draws."""
    run = path.parent / "run"
    run.mkdir(exist_ok=True)
    (run / "report.json").touch()
    before = earlier_rows(path.parent, [])
    summary = build_summary([], asked={}, arms=["jax"], before=before)
    print_sweep(summary, out=Console(file=StringIO(), width=100))
    return sweep_table(summary), sweep_page(summary, pictures=[draw_ratios(summary)])


@cache
def _reports() -> tuple[str, ...]:
    return ((_RUN / "report.json").read_text(),)


def _report(path: Path) -> object:
    """What a sweep reads of the report in a run folder."""
    case = Case.from_json((_RUN / "case.json").read_text())
    combination = Combination(model=case.model.name, mesh=case.mesh.name, case=case)
    return read_result(combination, CaseEnd("done", at=path.parent))


def _converted_seed() -> list[str]:
    """The table of `jax_impl.convert` for a model of `_config`, each weight in one file without bytes."""
    shapes = model_of(json.loads(_config()[0]), name="seed")
    rows = {
        spec.name: {"shape": spec.shape, "files": {"data": [0, 0]}} for spec in weights(Case.read("tp1", shapes=shapes))
    }
    return [json.dumps({"dtype": "bf16", "weights": rows})]


def _open_converted(path: Path) -> object:
    (path.parent / "config.json").write_text(_config()[0])
    for name in json.loads(_converted_seed()[0])["weights"]:
        folder = path.parent / WEIGHTS / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "data").touch()
    checkpoint = ConvertedCheckpoint.open(path.parent)
    return [checkpoint.check(name) for name in checkpoint.weights]


def _manifest() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.txt").write_text("a")
        files = {"a.txt": file_digest(Path(folder) / "a.txt")}
        return [json.dumps({"kind": "compiled", "key": "key", "files": files})]


_MESHES = ("tp4pp2", "tp8+sp", "dp2tp4@v5e:2x4", "dp4tp8@2xv5e:4x4", "ep4tp2", "cp2tp4pp2")
_TENSORS = json.dumps(
    {
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "BF16", "shape": [4], "data_offsets": [16, 24]},
    }
)

_MACHINE = """
memory = 2765
chunks = 2
[[dims]]
kind = "ring"
size = 4
bandwidth = 90
latency = 1000
[[dims]]
kind = "fully-connected"
size = 2
bandwidth = 45.5
latency = 500
algorithm = "direct:1"
[algorithms]
all-to-all = ["ring", "direct"]
"""

_WARNING = (
    "W1127 1 spmd_partitioner.cc:654] [SPMD] Involuntary full rematerialization. The compiler cannot go from sharding "
    "{devices=[2,1,4]<=[4,2]T(1,0)} to {devices=[1,8,1]<=[8]} efficiently for HLO operation %add.1 = bf16[128,256,64]"
    '{2,1,0} add(%p, %p), sharding={devices=[2,1,4]<=[4,2]T(1,0)}, metadata={op_name="jit(f)/add" stack_frame_id=7}. As'
)

READERS = (
    Reader("HLO text, anywhere", 18_000, _texts, _anywhere, _read_hlo),
    Reader("HLO text, beside the collectives", 14_000, lambda: [text for text in _texts() if text.places], _beside,
           _read_hlo),
    Reader("HLO text, with a scope map", 4_000, _texts, _anywhere, _read_named),
    Reader("log of the partitioner", 4_000, lambda: [_WARNING], mutate.text, _read_warnings),
    Reader("HLO text, by XLA's parser", 5_000, _counted_texts, _of_communication, _hold_against_xla),
    Reader("a line of HLO", 24_000, _lines, mutate.text, lambda given, _: read_line(given)),
    Reader("HLO file, gzipped", 3_000, lambda: [gzip.compress(text.text.encode()) for text in _texts()[:8]],
           mutate.data, _in_file("a.hlo.gz", lambda path: collectives(read_file(path), {}))),
    Reader("HLO proto", 6_000, _protos, mutate.data, _read_proto),
    Reader("recorded passes", 1_000, lambda: [_archive()], mutate.data, _read_archive),
    Reader("xplane.pb", 2_000, _profiles, mutate.data, _in_file("host.xplane.pb", _read_trace)),
    Reader("Chrome trace as a profile", 1_000, lambda: ['{"traceEvents": [{"ph": "X", "name": "a"}]}'], mutate.tree,
           _in_file("host.xplane.pb", _read_trace)),
    Reader("Chrome trace", 1_500, _trace, mutate.tree, _in_file("host.trace.json", _read_chrome_trace)),
    Reader("Chrome trace, gzipped", 500, lambda: [gzip.compress(_trace()[0].encode())], mutate.data,
           _in_file("host.trace.json.gz", _read_trace)),
    Reader("mesh names", 7_000, lambda: _MESHES, mutate.text, lambda given, _: read_mesh(given)),
    Reader("mesh files (TOML)", 5_000, lambda: [path.read_text() for path in sorted(SPECS.glob("*.toml"))], mutate.text,
           _in_file("a.toml", lambda path: read_mesh(str(path)))),
    Reader("samples of power (CSV)", 5_000, lambda: [_SAMPLES], mutate.text,
           _in_file("gpu_power_0.csv", _measured_power)),
    Reader("log of Zeus", 3_000, lambda: [_ZEUS_LOG], mutate.text, _in_file("energy.csv", _measured_power)),
    Reader("Measurement of Zeus", 3_000, lambda: [_MEASUREMENT], mutate.text, _in_file("m.json", _measured_power)),
    Reader("machine files (TOML)", 3_000, lambda: [_MACHINE], mutate.text, _in_file("a.toml", _time_on_machine)),
    Reader("Chakra trace", 4_000, _chakra, mutate.data, _in_file("w.1.et", _play_trace)),
    Reader("network.yml", 2_000, lambda: [_NETWORK], mutate.text, _in_file("network.yml", _play_trace)),
    Reader("system.json", 2_000, lambda: [_SYSTEM], mutate.tree, _in_file("system.json", _play_trace)),
    Reader("groups.json", 1_000, lambda: ['{"1": [0, 1], "7": [1, 0]}'], mutate.tree,
           _in_file("groups.json", _play_trace)),
    Reader("config.json", 5_000, _config, mutate.tree, _in_file("config.json", lambda path: read_model(path.parent))),
    Reader("safetensors header", 5_000, lambda: [_TENSORS], mutate.tree, _tensors),
    Reader("case.json", 4_000, lambda: [(_RUN / "case.json").read_text()], mutate.tree,
           lambda given, _: Case.from_json(given)),
    Reader("about.json of a run", 1_000, lambda: [(_RUN / "jax/prefill/tpu/about.json").read_text()], mutate.tree,
           _in_file("about.json", _cell)),
    Reader("remedies.json", 1_000, lambda: [(_RUN / "remedies.json").read_text()], mutate.tree,
           _in_file("remedies.json", _remedies)),
    Reader("sweep.json of an earlier sweep", 1_000, _sweep, mutate.tree, _in_file("sweep.json", _earlier)),
    Reader("report.json of a sweep's case", 500, _reports, mutate.tree, _in_file("report.json", _report)),
    Reader("converted.json", 2_000, _converted_seed, mutate.tree, _in_file("converted.json", _open_converted)),
    Reader("cache manifest", 2_000, _manifest, mutate.tree, _entry),
    Reader("cache entry", 1_000, doors.entry, mutate.data, doors.find_damaged),
    Reader("query (SQL)", 1_000, lambda: doors.SQL, mutate.text, doors.ask),
    Reader("mark of an export", 1_000, doors.mark, mutate.tree, doors.export_again),
    Reader("text of a study", 1_000, lambda: doors.TEMPLATE, doors.template, doors.fill_in),
    Reader("workload card (YAML)", 2_000, lambda: [doors.CARD], mutate.text, _in_file("a.yaml", doors.read_card_of)),
    Reader("chip file (TOML)", 2_000, lambda: [doors.CHIP], mutate.text,
           _in_file("chip.toml", doors.read_chip_file)),
    Reader("run.txt", 1_000, lambda: doors.RUN_LINE, mutate.text, _in_file("run.txt", _play_trace)),
    Reader("memory.json", 1_000, lambda: [doors.MEMORY], mutate.tree, _in_file("memory.json", _play_trace)),
    Reader("words of cost", 3_000, lambda: doors.COST, mutate.text, doors.ask_cost),
    Reader("windows to calibrate by (CSV)", 1_000, lambda: [doors.WINDOWS], mutate.text,
           _in_file("windows.csv", doors.calibrate_from)),
    Reader("study.toml", 2_000, lambda: [doors.STUDY], mutate.text, _in_file("study.toml", doors.list_sweeps)),
    Reader("Chrome trace of many events", 500, doors.long_trace, mutate.tree,
           _in_file("host.trace.json", _read_chrome_trace)),
)  # fmt: skip
