"""A run goes to CCL-Bench and comes back: the same metrics, every key of a card, nothing half-written."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from compare.ccl_bench_metrics.catalog import METRICS
from compare.ccl_bench_metrics.errors import NotApplicable
from compare.ccl_bench_metrics.subject import Request, read_subject
from compare.cli.export import main
from compare.export.ccl_bench import ccl_trace as trace
from compare.export.ccl_bench import directory
from compare.export.folder.exported_programs import select_programs
from compare.export.folder.write_folder import MARK
from compare.metrics.summary import trace_summary
from compare.profile.join.profile import read_profile
from compare.report.model.codec import encode
from compare.run.folder.load_run import read_run
from compare.timeline.columns import WORK_COLUMNS
from meshes.process import atomic_files
from tests.commands import check_refusal, run_here
from tests.places import EXAMPLE

pytestmark = pytest.mark.slow

NAME = "llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4-torchxla-decode-tpu"
ONE = ["--arm", "torchxla", "--phase", "decode", "--cell", "tpu"]

KEYS = """
version description hf_url trace_url contributor contact
workload.model.phase workload.model.moe workload.model.granularity workload.model.model_family workload.model.precision
workload.model.epochs workload.model.iteration workload.model.model_arch.num_params
workload.model.model_arch.num_params_embedding workload.model.model_arch.num_layers workload.model.model_arch.num_heads
workload.model.model_arch.head_dim
workload.data.batch_size workload.data.seq_len workload.data.input_len workload.data.output_len workload.data.dataset
workload.hardware.network_topo.topology workload.hardware.network_topo.bandwidth_gbps
workload.hardware.xpu_spec.type workload.hardware.xpu_spec.model workload.hardware.xpu_spec.total_count
workload.hardware.xpu_spec.count_per_node workload.hardware.driver_version
Model-executor.framework.name Model-executor.framework.compiler_tool_selection
Model-executor.model_plan_parallelization.dp_replicate Model-executor.model_plan_parallelization.dp_shard
Model-executor.model_plan_parallelization.tp Model-executor.model_plan_parallelization.pp
Model-executor.model_plan_parallelization.cp Model-executor.model_plan_parallelization.ep
Model-executor.model_plan_parallelization.pp_mb
Model-executor.communication_library.name Model-executor.communication_library.version
Model-executor.communication_library.env Model-executor.protocol_selection
metric_source.traces metric_source.metrics_specific_trace
"""
"""Those of workload_card_template.yaml at 1d257f0."""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    place = tmp_path_factory.mktemp("export") / "traces"
    assert main([str(EXAMPLE), "--to", "ccl-bench", "--out", str(place), *ONE]) == 0
    return place


def export(place):
    return run_here("export", EXAMPLE, "--to", "ccl-bench", "--out", place, *ONE)


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


def test_a_directory_is_what_their_tools_take(out):
    folder = out / NAME
    assert "tpu" in folder.name
    assert only(folder, "*.json").name == "host0.trace.json"
    packed = only(folder, "**/*.json.gz")
    assert packed.parent != folder
    assert gzip.decompress(packed.read_bytes()) == only(folder, "*.json").read_bytes()
    assert only(folder, "*.yaml").name == f"{NAME}.yaml"


def test_a_card_has_every_key_of_the_template(out):
    card = yaml.safe_load(only(out / NAME, "*.yaml").read_text())
    for path in KEYS.split():
        value = card
        for key in path.split("."):
            assert key in value, path
            value = value[key]
    plan = card["Model-executor"]["model_plan_parallelization"]
    assert [plan[name] for name in ("dp_replicate", "dp_shard", "tp", "pp", "cp", "ep", "pp_mb")] == [
        1,
        1,
        4,
        2,
        1,
        1,
        2,
    ]
    model = card["workload"]["model"]
    assert (model["phase"], model["moe"], model["precision"], model["iteration"]) == ("inference", False, "bf16", 1)
    # 32 layers of 4·4096² + … are 8,030,261,248 parameters (Llama-3.1-8B's model card), 128256·4096 of them embeddings.
    assert model["model_arch"]["num_params"] == 8_030_261_248
    assert model["model_arch"]["num_params_embedding"] == 525_336_576
    xpu = card["workload"]["hardware"]["xpu_spec"]
    assert (xpu["type"], xpu["model"], xpu["total_count"]) == ("TPU", "tpu_v5e", 8)
    # 4 links of 45 GB/s.
    assert card["workload"]["hardware"]["network_topo"]["bandwidth_gbps"] == ["N/A", 1440]
    assert card["metric_source"]["traces"] == ["json_tpu"]
    assert "Its times are modelled: modelled for v5e:2x4." in card["description"]


def test_a_trace_is_laid_out_as_xlas_profiler_does(out):
    events = json.loads(only(out / NAME, "*.json").read_text())["traceEvents"]
    processes = [row["args"]["name"] for row in events if row["name"] == "process_name"]
    assert processes == ["/host:CPU", *(f"/device:TPU:{device}" for device in range(8))]
    reduce = next(row for row in events if row["name"].startswith("all-reduce") and row["pid"] == 3)
    words = "hlo_category device_offset_ps device_duration_ps bytes_accessed shape_with_layout long_name hlo_op tf_op"
    assert {*words.split(), "all_reduce_unique_id", "run_id"} <= set(reduce["args"])
    assert reduce["args"]["hlo_category"] == "all-reduce"
    assert int(reduce["args"]["device_offset_ps"]) == pytest.approx(reduce["ts"] * 1e6, abs=0.51)
    # The profiler counts operand and result.
    assert int(reduce["args"]["bytes_accessed"]) % 2 == 0
    group = reduce["args"]["all_reduce_unique_id"]
    meeting = {row["pid"] - 3 for row in events if row.get("args", {}).get("all_reduce_unique_id") == group}
    assert meeting == {0, 1, 2, 3}  # tp of stage 0


def numbers(subject):
    found = {}
    for metric in METRICS.values():
        try:
            found[metric.name] = metric.measure(subject).number
        except NotApplicable as reason:
            found[metric.name] = str(reason)
    return found


@pytest.mark.parametrize("given", [True, False])
def test_what_comes_back_is_the_runs_own_timeline(out, given):
    """Times to the picosecond, bytes exactly; without the program what only it tells reads `?`."""
    (timed,) = select_programs(read_run(EXAMPLE), arm="torchxla", phase="decode", cell="tpu")
    axes = timed.program.case.mesh.split_axes
    module = timed.program.module if given else None
    back = read_profile([only(out / NAME, "*.json")], axes=axes, hlo=module)
    assert (back.source, back.label) == ("modelled", "modelled for v5e:2x4")
    ours, theirs = (encode(trace_summary(timeline).per_step) for timeline in (timed.timeline, back))
    if not given:
        assert theirs.pop("by_axes")["?"]["communication_ns"]
        del ours["by_axes"]
    assert flat(theirs) == {
        key: pytest.approx(value, abs=0.001) if key.endswith("_ns") else value for key, value in flat(ours).items()
    }


def test_the_program_of_another_step_is_left_out(out):
    """Its names are partly the same: 69.7 MB of another all-reduce.9 would stand beside this one's time."""
    (other,) = select_programs(read_run(EXAMPLE), arm="jax", phase="prefill", cell="tpu")
    trace, axes = only(out / NAME, "*.json"), other.program.case.mesh.split_axes
    read, without = (read_profile([trace], axes=axes, hlo=module) for module in (other.program.module, None))
    pd.testing.assert_frame_equal(read.events, without.events)
    assert [note for note in read.notes if note not in without.notes] == [
        "the given program is another's: 24200 of 32136 operations are not in it; the profile is read without it"
    ]


def flat(value, path=""):
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, part in value.items() for key, leaf in flat(part, f"{path}/{name}").items()}


def test_events_come_back_to_the_picosecond(out):
    (timed,) = select_programs(read_run(EXAMPLE), arm="torchxla", phase="decode", cell="tpu")
    back = read_subject(Request(trace=out / NAME)).timeline
    for shown, alike in timed.timeline.stands_for.items():
        own = operations(timed.timeline, shown)
        hops = np.mean([operations(back, device)["ici_byte_hops"].to_numpy() for device in alike], axis=0)
        np.testing.assert_allclose(hops, own["ici_byte_hops"].to_numpy(), rtol=1e-12)
        for device in alike:
            read = operations(back, device)
            for name in ("hlo_op", "role", "scope", "kind", "axes"):
                assert read[name].astype(str).tolist() == own[name].astype(str).tolist()
            exact = dict.fromkeys(("payload_bytes", "dcn_bytes", *list(WORK_COLUMNS)[:3]), 0.0)
            for name, most in (exact | dict.fromkeys(("start_ns", "duration_ns", "wait_ns"), 0.001)).items():
                both = read[name].to_numpy(), own[name].to_numpy()
                np.testing.assert_allclose(*both, rtol=0, atol=most)


@pytest.mark.parametrize(("platform", "role"), [("CPU", "compute"), ("TPU", "container")])
def test_threads_of_a_cpu_run_beside_each_other(tmp_path, platform, role):
    """There a long operation may span a communication of the same device; on a TPU's line it is a loop around it."""
    (timed,) = select_programs(read_run(EXAMPLE), arm="torchxla", phase="decode", cell="tpu")
    program, events = timed.program, timed.timeline.events
    inner = events[events["role"].eq("communication") & events["line"].eq("XLA Ops")].index[0]
    long = events.index[events["role"].eq("compute") & events["device"].eq(events.at[inner, "device"])][0]
    start, length = events.at[inner, "start_ns"] - 5, events.at[inner, "duration_ns"] + 10
    changed = events.assign(
        start_ns=events["start_ns"].where(events.index != long, start),
        duration_ns=events["duration_ns"].where(events.index != long, length),
    )
    (tmp_path / "host0.trace.json").write_bytes(
        trace.write_trace(replace(timed.timeline, events=changed), program.module, program.rows, platform=platform)
    )
    back = read_profile([tmp_path / "host0.trace.json"], axes=program.case.mesh.split_axes, hlo=program.module).events
    (found,) = back[
        back["duration_ns"].sub(length).abs().lt(0.002)
        & back["device"].eq(events.at[long, "device"])
        & back["hlo_op"].eq(events.at[long, "hlo_op"])
    ].itertuples()
    assert found.role == role


def operations(timeline, device):
    """Of one device, in order; without the start and the end of what has an event of its own."""
    events = timeline.events[timeline.events["device"].eq(device) & timeline.events["role"].ne("part")]
    return events.astype({"hlo_op": str}).sort_values(["hlo_op", "start_ns"], ignore_index=True)


def test_every_metric_is_that_of_the_run(out):
    ours = numbers(read_subject(Request(trace=EXAMPLE, arm="torchxla", phase="decode")))
    theirs = numbers(read_subject(Request(trace=out / NAME)))
    assert ours["traffic_window"] > 0
    # The bytes that XLA counts are in the export; a run folder has its own count alone.
    assert ours.pop("estimated_bandwidth") == "the trace shows no bytes_accessed"
    assert isinstance(theirs.pop("estimated_bandwidth"), float)
    assert theirs == {
        name: value if isinstance(value, str) else pytest.approx(value, rel=1e-9) for name, value in ours.items()
    }


def test_of_very_many_events_alike_devices_are_shown_once(tmp_path, monkeypatch, out):
    monkeypatch.setattr(trace, "MOST_EVENTS", 1)
    assert main([str(EXAMPLE), "--to", "ccl-bench", "--out", str(tmp_path / "o"), *ONE]) == 0
    few = tmp_path / "o" / NAME
    assert only(few, "*.json").stat().st_size < only(out / NAME, "*.json").stat().st_size / 3
    ours, theirs = (numbers(read_subject(Request(trace=folder))) for folder in (out / NAME, few))
    assert theirs == {
        name: value if isinstance(value, str) else pytest.approx(value, rel=1e-9) for name, value in ours.items()
    }


def test_the_program_beside_it_is_a_run_folder(out):
    (result,) = read_run(out / NAME / directory.PROGRAM).results
    assert (result.key, result.status) == (("torchxla", "decode", "tpu"), "ok")


def test_an_export_is_replaced_and_anything_else_refused(tmp_path, out):
    shutil.copytree(out, tmp_path / "again")
    assert export(tmp_path / "again").returncode == 0
    assert (tmp_path / "again" / NAME / "host0.trace.json").is_file()
    (tmp_path / "again" / "mine.txt").write_text("mine")
    mixed = sorted(path.name for path in (tmp_path / "again").iterdir())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name, complaint in {"again": "mine.txt", "other": "thesis.tex", "file": "is no folder"}.items():
        check_refusal(export(tmp_path / name), complaint)
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == mixed
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["thesis.tex"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "file", "other"]


def spoil(place, how):
    match how:
        case "a note":
            (place / NAME / "my-notes.txt").write_text("mine")
        case "a folder of notes":
            (place / NAME / "mine/deep").mkdir(parents=True)
        case "a link":
            (place / NAME / "mine").symlink_to(place.parent)
        case "a changed card":
            with (place / NAME / f"{NAME}.yaml").open("a") as card:
                card.write("# mine\n")
        case "a link in a file's place":
            (place / NAME / f"{NAME}.yaml").rename(place.parent / "card")
            (place / NAME / f"{NAME}.yaml").symlink_to(place.parent / "card")
        case "a forged mark":
            (place / "precious").mkdir()
            (place / "precious/thesis.tex").write_text("mine")
            mark = json.loads((place / MARK).read_text())
            mark["folders"].append("precious")
            (place / MARK).write_text(json.dumps(mark))
        case "a mark of an earlier version":
            (place / MARK).write_text(json.dumps({"to": "ccl-bench", "folders": [NAME]}))


@pytest.mark.parametrize(
    ("how", "named"),
    {
        "a note": f"{NAME}/my-notes.txt",
        "a folder of notes": f"{NAME}/mine/deep",
        "a link": f"{NAME}/mine",
        "a changed card": f"{NAME}/{NAME}.yaml",
        "a link in a file's place": f"{NAME}/{NAME}.yaml",
        "a forged mark": "precious/thesis.tex",
        "a mark of an earlier version": f"{NAME}/{NAME}.yaml",
    }.items(),
)
def test_what_the_user_has_in_an_export_stays_and_is_named(tmp_path, out, how, named):
    place = tmp_path / "again"
    shutil.copytree(out, place)
    spoil(place, how)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    done = export(place)
    check_refusal(done, "holds what no export wrote")
    assert named in done.stderr
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_a_killed_export_s_folder_goes_with_the_next_one(tmp_path, out):
    shutil.copytree(out, tmp_path / ".new.0123.part")
    (tmp_path / ".other.0123.part").mkdir()
    with atomic_files.new_folder(tmp_path, lambda word: f".new.{word}.part") as alive:
        assert export(tmp_path / "new").returncode == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, ".other.0123.part", "new"])


def test_the_path_that_is_printed_moves_no_cursor(tmp_path):
    done = export(tmp_path / "a\x1b[31m")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/a\N{REPLACEMENT CHARACTER}[31m/{NAME}\n")


def test_an_error_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory, "write_card", fail)
    check_refusal(export(tmp_path / "new"), "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([EXAMPLE, "--to", "nsys", "--out", "new"], "invalid choice: 'nsys'"),
        ([EXAMPLE, "--to", "ccl-bench"], "--out"),
        ([EXAMPLE, "--to", "ccl-bench", "--out", "new", "--facts"], "--facts belongs to --to chakra"),
        ([EXAMPLE, "--to", "ccl-bench", "--out", "new", "--arm", "nobody"], "has no compiled program nobody/*/*"),
        (["nowhere", "--to", "ccl-bench", "--out", "new"], "is not a run folder"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, words, complaint):
    check_refusal(run_here("export", *words, cwd=tmp_path), complaint)
    assert list(tmp_path.iterdir()) == []


def test_json_names_the_folders_that_were_written(tmp_path, capsys):
    assert main([str(EXAMPLE), "--to", "ccl-bench", "--out", str(tmp_path / "o"), *ONE, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["to"], told["failures"]) == ("ccl-bench", [])
    assert [Path(folder) for folder in told["folders"]] == [
        path for path in sorted((tmp_path / "o").iterdir()) if path.is_dir()
    ]
