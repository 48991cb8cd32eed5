"""`python -m compare.metric`: the last line is a number; what is wrong is one line and exit 2."""

import json
import re

import pytest

from compare.ccl_bench_metrics.catalog import METRICS
from compare.cli.export import main as export
from compare.cli.metric import main
from meshes.process.command_line import run_command
from tests.commands import check_refusal, run_here
from tests.compare.ccl_bench_metrics.test_known_answers import inference, two_axes
from tests.compare.profile.chrome.traces import CARD, Trace
from tests.places import EXAMPLE, ROOT, copy_example, example_report

NAMES = (
    "avg_step_time ttft tpot mfu communication_fraction communication_ratio total_communication_time "
    "compute_comm_overlap bandwidth_utilization_allgather_group_6 bandwidth_utilization_allreduce_group_6 "
    "bandwidth_utilization_alltoall_group_6 bandwidth_utilization_reducescatter_group_6 "
    "collective_vol_allreduce_gb collective_vol_allgather_gb collective_vol_reducescatter_gb "
    "collective_vol_alltoall_gb collective_vol_total_gb dominant_kernel_concentration average_memory_bandwidth "
    "memory_transfer_overhead estimated_bandwidth comm_kernel_breakdown_tpu "
    "straggler coll_call_num traffic_window traffic_distribution bubble_size_pipeline "
    "scale_up_bw_utility hockney_alpha_s hockney_beta_s_per_byte "
)


def run(words):
    with pytest.raises(SystemExit) as caught:
        run_command(main, [str(word) for word in words])
    return caught.value.code


def test_every_name_is_there_and_listed(capsys):
    assert set(NAMES.split()) == set(METRICS)
    assert run(["--list"]) == 0
    printed = capsys.readouterr().out
    for metric in METRICS.values():
        assert f"{metric.name} ({metric.unit})" in printed
        assert metric.ccl_bench in printed


def test_the_page_of_metrics_has_the_same_names_and_units():
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ", page[page.index("## 13.") :], re.MULTILINE)
    assert dict(rows) == {metric.name: metric.unit for metric in METRICS.values()}


def test_the_last_line_is_a_number(tmp_path, capsys):
    folder = inference(tmp_path / "tpu")
    assert run(["--trace", folder, "--metric", "ttft"]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("0.005\n", "")


def test_what_does_not_apply_is_minus_one_and_says_why(tmp_path, capsys):
    folder = inference(tmp_path / "tpu")
    assert run(["--trace", folder, "--metric", "compute_comm_overlap"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "-1\n"
    assert printed.err == "compute_comm_overlap: no step communicates: there is nothing to overlap\n"


def test_json_has_all_that_the_number_was_made_of(tmp_path, capsys):
    folder = two_axes(tmp_path / "tpu")
    words = ["--trace", folder, "--metric", "traffic_window", "--axes", "pp=2,tp=2", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["value"], found["unit"], found["not_applicable"]) == (12.5e-6, "s", None)
    assert len(found["details"]["intervals"]) == 2


def test_all_metrics_come_from_one_reading_in_one_table(tmp_path, capsys):
    folder = two_axes(tmp_path / "tpu")
    words = ["--trace", folder, "--axes", "pp=2,tp=2", "--metric"]
    assert run([*words, "all"]) == 0
    printed = capsys.readouterr()
    shown = {line.split()[0]: line.split()[1:] for line in printed.out.splitlines()}
    assert list(shown) == list(METRICS)
    for name in ("traffic_window", "coll_call_num", "mfu", "communication_fraction"):
        run([*words, name])
        assert shown[name] == [capsys.readouterr().out.split()[-1], METRICS[name].unit]
    assert {line.partition(":")[0] for line in printed.err.splitlines()} == {
        name for name, (value, _) in shown.items() if value == "-1"
    }


def test_all_metrics_as_json_have_what_each_was_made_of(tmp_path, capsys):
    folder = inference(tmp_path / "tpu")
    assert run(["--trace", folder, "--metric", "all", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["metric"]: row for row in document["metrics"]}
    assert list(rows) == list(METRICS)
    assert (rows["ttft"]["value"], rows["ttft"]["not_applicable"]) == (0.005, None)
    assert (rows["compute_comm_overlap"]["value"], rows["compute_comm_overlap"]["details"]) == (-1, {})
    assert "nothing to overlap" in rows["compute_comm_overlap"]["not_applicable"]


@pytest.mark.slow
def test_a_run_folder_says_what_its_report_says(capsys):
    timing = example_report()["phases"]["decode"]["arms"]["torchxla"]["timing"]
    per_step = timing["per_step"]
    expected = {
        "tpot": per_step["step_ns"] / 1e9,
        "communication_fraction": 100 * per_step["communication_fraction"],
        "compute_comm_overlap": 100 * per_step["overlap"],
        "collective_vol_allgather_gb": per_step["by_kind"]["all-gather"]["payload_bytes"] / 1e9,
        "coll_call_num": sum(part["executions"] for part in per_step["by_kind"].values()),
        "bubble_size_pipeline": timing["pipeline"]["bubble_share"],
    }
    for name, number in expected.items():
        words = ["--trace", EXAMPLE, "--arm", "torchxla", "--phase", "decode", "--metric", name]
        assert run(words) == 0
        assert float(capsys.readouterr().out.splitlines()[-1]) == pytest.approx(number, rel=1e-9)


def test_the_largest_share_of_a_run_is_that_of_its_reports_bytes(capsys):
    rows = example_report()["phases"]["prefill"]["arms"]["jax"]["collectives"]
    by_axes = {}
    for row in rows:
        by_axes[row["axes"]] = by_axes.get(row["axes"], 0) + row["step_wire_bytes"]
    run(["--trace", EXAMPLE, "--arm", "jax", "--phase", "prefill", "--metric", "traffic_distribution"])
    expected = max(by_axes.values()) / sum(by_axes.values())
    assert float(capsys.readouterr().out) == pytest.approx(expected, rel=1e-6)


def test_the_utility_is_of_the_chips_that_a_run_keeps(tmp_path, capsys):
    """Links of a tenth of the rate: a longer step."""
    run_folder = copy_example(tmp_path / "run", "jax/decode/tpu")
    words = ["--arm", "jax", "--phase", "decode", "--metric", "scale_up_bw_utility", "--json"]
    values = []
    for text in ("", '[time.link_bytes_per_s]\nvalue = 3.7303e9\nunit = "byte/s"\n'):
        (run_folder / "chip.toml").write_text(text)
        run(["--trace", run_folder, *words])
        values.append(json.loads(capsys.readouterr().out)["details"]["step_s"])
    assert values[1] > 1.005 * values[0]


def test_twice_the_rate_takes_off_half_of_what_the_bytes_take(capsys):
    """With T = rest + bytes/rate, T − T(2×) is twice T(2×) − T(4×)."""
    from dataclasses import replace

    from compare.ccl_bench_metrics.subject import Request, read_subject
    from compare.schedule.hardware import Hardware
    from compare.schedule.schedule import model_step

    request = Request(trace=EXAMPLE, arm="jax", phase="prefill")
    run(["--trace", EXAMPLE, "--arm", "jax", "--phase", "prefill", "--metric", "scale_up_bw_utility", "--json"])
    found = json.loads(capsys.readouterr().out)
    subject = read_subject(request)
    assert subject.plan is not None
    assert subject.module is not None
    rates = Hardware.of(subject.plan.topology.generation)
    faster = replace(rates, link_bytes_per_ns=4 * rates.link_bytes_per_ns)
    fourth = float(model_step(subject.module, subject.rows, subject.plan, hardware=faster).steps["duration_ns"].max())
    once, twice = (found["details"][name] for name in ("step_s", "step_with_twice_the_rate_s"))
    assert found["value"] == pytest.approx(100 * (once - twice) / once)
    assert once - twice == pytest.approx(2 * (twice - fourth / 1e9), rel=1e-3)
    per_step = example_report()["phases"]["prefill"]["arms"]["jax"]["timing"]["per_step"]
    assert once == pytest.approx(per_step["step_ns"] / 1e9)


COMPUTES = """HloModule f, is_scheduled=true, num_partitions=4

ENTRY main {
  p = f32[4194304]{0} parameter(0)
  ROOT a = f32[4194304]{0} add(p, p)
}
"""


def test_a_program_that_only_computes_gains_nothing(tmp_path, capsys):
    (tmp_path / "f.hlo").write_text(COMPUTES)
    trace = Trace()
    trace.op(0, "a", 0, 5, "loop fusion")
    folder = trace.write(tmp_path / "tpu")
    words = ["--trace", folder, "--metric", "scale_up_bw_utility", "--hlo", tmp_path / "f.hlo", "--mesh", "tp4"]
    assert run(words) == 0
    assert float(capsys.readouterr().out) == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--trace", "good", "--metric", "nonsense"], "unknown metric 'nonsense'; --list names all"),
        (["--trace", "good", "--metric", "mffu"], "unknown metric 'mffu'; did you mean mfu? --list names all"),
        (["--trace", "nowhere", "--metric", "ttft"], "no such file or directory"),
        (["--trace", "good"], "give --trace DIR and --metric NAME"),
        (["--trace", "empty", "--metric", "ttft"], "no profile in this folder"),
        (["--trace", "cut", "--metric", "avg_step_time"], "cut, or damaged"),
        (["--trace", "text", "--metric", "avg_step_time"], "no trace: JSON with traceEvents was expected"),
        (["--trace", "gpu", "--metric", "avg_step_time"], "a profile of GPUs"),
        (["--trace", "void", "--metric", "avg_step_time"], "the file is empty"),
        (["--trace", "keyless", "--metric", "tpot"], "has no workload.data.output_len, which this metric needs"),
        (["--trace", "wordy", "--metric", "tpot"], "'three'; a whole number was expected"),
        (["--trace", "broken", "--metric", "tpot"], "is no YAML"),
        (["--trace", "listed", "--metric", "tpot"], "is no workload card"),
        (["--trace", "double", "--metric", "tpot"], "2 cards"),
        (["--trace", EXAMPLE, "--metric", "avg_step_time"], "choose by --framework, --phase, --variant"),
        (["--trace", EXAMPLE, "--metric", "avg_step_time", "--arm", "nobody"], "no program of these words"),
        (["--trace", "good", "--metric", "ttft", "--axes", "data"], "cannot read the axes"),
        (["--trace", "good", "--metric", "ttft", "--hlo", "nowhere.hlo"], "No such file"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, words, complaint):
    folder = inference(tmp_path / "good")
    text = (folder / "host.trace.json").read_text()
    (tmp_path / "empty").mkdir()
    for name, content in {"cut": text[:-30], "text": "hello", "void": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "host.trace.json").write_text(content)
    gpu = Trace(kind="GPU")
    gpu.op(0, "nccl", 0, 5, "")
    gpu.write(tmp_path / "gpu", card=CARD)
    inference(tmp_path / "keyless", card=CARD.replace("output_len: 3", "input_len: 3"))
    inference(tmp_path / "wordy", card=CARD.replace("output_len: 3", "output_len: three"))
    inference(tmp_path / "broken", card="a: [1, 2")
    inference(tmp_path / "listed", card="- a\n- b\n")
    (inference(tmp_path / "double") / "other.yaml").write_text(CARD)
    named = [tmp_path / word if isinstance(word, str) and (tmp_path / word).exists() else word for word in words]
    check_refusal(run_here("metric", *named), complaint)


def test_a_run_has_its_own_mesh_and_what_is_given_beside_it_is_refused(capsys):
    assert run(["--trace", EXAMPLE, "--metric", "avg_step_time", "--mesh", "tp8"]) == 2
    assert "--mesh: " in (said := capsys.readouterr().err)
    assert "has its own program and mesh" in said


def test_the_only_program_of_an_export_is_taken_though_the_metric_is_of_another_phase(tmp_path, capsys):
    words = ["--arm", "jax", "--phase", "decode", "--cell", "tpu"]
    export([str(EXAMPLE), "--to", "ccl-bench", "--out", str(tmp_path / "out"), *words])
    (folder,) = (tmp_path / "out").glob("*-tpu")
    assert run(["--trace", folder, "--metric", "ttft"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "-1"
    assert "this is a decode step" in printed.err
