"""Metrics of small traces written by hand: each number worked out beside it.

The numbers of CCL-Bench that stand in comments are those of its own tools at 1d257f0 on the like.
"""

import math

import pytest

from compare.ccl_bench_metrics.catalog import METRICS
from compare.ccl_bench_metrics.errors import NotApplicable
from compare.ccl_bench_metrics.subject import Request, read_subject
from tests.compare.profile.chrome.traces import CARD, Trace, all_reduce, permute

CHIPS = range(4)


def value(name, folder, **request):
    return METRICS[name].measure(read_subject(Request(trace=folder, **request)))


def number(name, folder, **request):
    return value(name, folder, **request).number


def why_not(name, folder, **request):
    with pytest.raises(NotApplicable) as caught:
        value(name, folder, **request)
    return str(caught.value)


def test_one_device_does_not_communicate_whatever_its_host_is_called(tmp_path):
    """Steps of 8 ms with 7 ms of compute, beside frames of Python named like collectives (theirs: 87.5 % overlap)."""
    trace = Trace()
    for step in range(3):
        trace.step(0, step, 8000 * step, 8000)
        trace.op(0, "fusion.1", 8000 * step, 7000, "loop fusion")
        trace.host("$core.py:331 step", 8000 * step, 8000)
        trace.host("$executor.py:91 collective_rpc", 8000 * step + 500, 7400)
    folder = trace.write(tmp_path / "tpu", card=CARD)
    assert number("communication_fraction", folder) == 0
    assert number("communication_ratio", folder) == 0
    assert number("total_communication_time", folder) == 0
    assert number("collective_vol_total_gb", folder) == 0
    assert number("coll_call_num", folder) == 0
    assert why_not("compute_comm_overlap", folder) == "no step communicates: there is nothing to overlap"
    assert why_not("straggler", folder) == "fewer than two devices communicate"


@pytest.mark.parametrize("named", [True, False])
def test_a_local_broadcast_and_a_program_around_all_are_no_communication(tmp_path, named):
    """Of a step of 8 ms 2 ms all-reduce and 1 ms all-gather: 3/8 = 37.5 % (theirs 26.7: 4 of 15 ms of events)."""
    trace = Trace(named=named)
    trace.step(0, 0, 0, 8000)
    trace.module(0, 0, 8000)
    trace.op(0, "fusion.1", 0, 3000, "loop fusion")
    trace.op(0, "all-reduce.1", 3000, 2000, "all-reduce")
    trace.op(0, "broadcast.7", 5000, 1000, "broadcast")
    trace.op(0, "all-gather.2", 6000, 1000, "all-gather")
    folder = trace.write(tmp_path / "tpu")
    assert number("communication_fraction", folder) == 37.5
    # 3 ms of communication in 7 ms in which the device does anything.
    assert number("communication_ratio", folder) == pytest.approx(100 * 3 / 7)
    assert number("total_communication_time", folder) == 0.003
    assert number("compute_comm_overlap", folder) == 0
    # Of 7 ms of operations the loop fusion takes the most: 3 ms.
    assert number("dominant_kernel_concentration", folder) == pytest.approx(100 * 3 / 7)


def test_bytes_a_second_of_one_device_without_the_loop_around(tmp_path):
    """Two chips, a step of 100 us: a loop of 3 MB around a fusion of 2 and an all-reduce of 1: 3 MB / 100 us = 30 GB/s
    (theirs 120: both chips, and the loop again)."""
    trace = Trace()
    for device in (0, 1):
        trace.step(device, 0, 0, 100)
        trace.op(device, "while.1", 0, 80, "while", bytes_accessed="3000000")
        trace.op(device, "fusion.1", 0, 60, "loop fusion", bytes_accessed="2000000")
        trace.op(device, "all-reduce.1", 60, 20, "all-reduce", bytes_accessed="1000000")
    folder = trace.write(tmp_path / "tpu")
    assert number("estimated_bandwidth", folder) == pytest.approx(30)
    assert number("comm_kernel_breakdown_tpu", folder) == pytest.approx(20e-6)
    assert why_not("estimated_bandwidth", inference(tmp_path / "none")) == "the trace shows no bytes_accessed"


def test_kinds_at_once_count_once_each(tmp_path):
    """An all-gather from 0 to 40 us and an all-reduce within it from 20 to 30: 40 us of communication, 50 by kind."""
    trace = Trace()
    trace.step(0, 0, 0, 100)
    trace.op(0, "all-gather-start.1", 0, 1, "all-gather-start")
    trace.op(0, "all-reduce.1", 20, 10, "all-reduce")
    trace.op(0, "all-gather-done.1", 39, 1, "all-gather-done")
    folder = trace.write(tmp_path / "tpu")
    assert number("total_communication_time", folder) == pytest.approx(40e-6)
    assert number("comm_kernel_breakdown_tpu", folder) == pytest.approx(50e-6)


def test_time_is_of_one_device_and_one_step(tmp_path):
    """Four chips with 300 µs each in both of two steps: 300 µs (theirs: 1.2 ms)."""
    trace = Trace()
    for device in CHIPS:
        for step in range(2):
            trace.step(device, step, 1000 * step, 1000)
            trace.op(device, "fusion.1", 1000 * step, 500, "loop fusion")
            trace.op(device, "all-reduce.1", 1000 * step + 500, 300, "all-reduce", bytes_accessed="2000000")
    folder = trace.write(tmp_path / "tpu")
    assert number("total_communication_time", folder) == 300e-6
    assert number("avg_step_time", folder) == 1e-3


def test_two_collectives_at_once_are_communication_once(tmp_path):
    """All-gather 0–400 beside all-reduce 200–600 µs, compute 300–500: 600 µs, of which 200 hidden."""
    trace = Trace()
    trace.step(0, 0, 0, 1000)
    trace.op(0, "all-gather.1", 0, 400, "all-gather", line="Async XLA Ops")
    trace.op(0, "all-reduce.1", 200, 400, "all-reduce", line="Async XLA Ops")
    trace.op(0, "fusion.1", 300, 200, "loop fusion")
    folder = trace.write(tmp_path / "tpu")
    assert number("total_communication_time", folder) == 600e-6
    assert number("compute_comm_overlap", folder) == pytest.approx(100 / 3)


def test_volume_is_of_one_device_and_one_step_and_permutes_count(tmp_path):
    """2 MB × 3 steps × 4 chips: 2 MB (theirs: 24 MB); with a permute of 5 MB 7 MB in all (theirs: without it)."""
    trace = Trace()
    for device in CHIPS:
        for step in range(3):
            trace.step(device, step, 1000 * step, 1000)
            trace.op(device, "all-reduce.1", 1000 * step, 300, "all-reduce", bytes_accessed="2000000")
            trace.op(
                device,
                "collective-permute.2",
                1000 * step + 300,
                100,
                "collective-permute",
                raw_bytes_accessed=5_000_000,
            )
    folder = trace.write(tmp_path / "tpu")
    assert number("collective_vol_allreduce_gb", folder) == 0.002
    assert number("collective_vol_allgather_gb", folder) == 0
    assert value("collective_vol_total_gb", folder).details["by_kind_gb"]["collective-permute"] == 0.005
    assert number("collective_vol_total_gb", folder) == 0.007
    assert number("coll_call_num", folder) == 2
    assert "groups of the collectives are not known" in why_not("bandwidth_utilization_allreduce_group_6", folder)


def test_bandwidth_counts_10_to_the_9_and_the_group(tmp_path):
    """2 MB among 4 in 300 µs: 2e6 · 2·3/4 ÷ 300e-6 = 10 GB/s (theirs 9.31: GiB).  The median of 10, 10 and 5."""
    trace = Trace()
    for step, length in enumerate((300, 300, 600)):
        for device in CHIPS:
            trace.step(device, step, 1000 * step, 1000)
            line = all_reduce(1, 500_000)
            trace.op(device, "all-reduce.1", 1000 * step, length, "all-reduce", long_name=line)
    folder = trace.write(tmp_path / "tpu")
    found = value("bandwidth_utilization_allreduce_group_6", folder)
    assert found.number == pytest.approx(10)
    assert found.details["quartiles_gb_per_s"][0] == pytest.approx(5)
    assert why_not("bandwidth_utilization_alltoall_group_6", folder) == "no step has any all-to-all"


@pytest.mark.parametrize(("alpha", "beta"), [(2e-6, 1e-11), (0.5e-6, 4e-11)])
def test_alpha_and_beta_of_a_ring_come_back(tmp_path, alpha, beta):
    """T = 2(n − 1)(α + β·S/n) with groups of 4 and of 2, though the card says 4 chips."""
    trace, at = Trace(), 0.0
    for place, (elements, groups, members) in enumerate(
        [
            (1000, "{{0,1,2,3}}", 4),
            (250_000, "{{0,1,2,3}}", 4),
            (500_000, "{{0,1},{2,3}}", 2),
            (9000, "{{0,1},{2,3}}", 2),
        ]
    ):
        length = 2 * (members - 1) * (alpha + beta * 4 * elements / members) * 1e6
        for device in CHIPS:
            trace.op(
                device, f"all-reduce.{place}", at, length, "all-reduce", long_name=all_reduce(place, elements, groups)
            )
        at += length + 1
    for device in CHIPS:
        trace.step(device, 0, 0, at)
    folder = trace.write(tmp_path / "tpu", card=CARD)
    assert number("hockney_alpha_s", folder) == pytest.approx(alpha, rel=1e-3)
    assert number("hockney_beta_s_per_byte", folder) == pytest.approx(beta, rel=1e-3)


def test_waiting_is_no_part_of_the_line(tmp_path):
    """50 µs of each time are shown to be waiting."""
    trace = Trace()
    for place, elements in enumerate((1000, 250_000)):
        length = 2 * 3 * (2e-6 + 1e-11 * 4 * elements / 4) * 1e6 + 50
        trace.op(
            0,
            f"all-reduce.{place}",
            500 * place,
            length,
            "all-reduce",
            long_name=all_reduce(place, elements),
            wait_ps="50000000",
        )
    trace.step(0, 0, 0, 2000)
    assert number("hockney_alpha_s", trace.write(tmp_path / "tpu")) == pytest.approx(2e-6, rel=1e-3)


def test_one_size_tells_no_alpha_from_beta(tmp_path):
    trace = Trace()
    trace.step(0, 0, 0, 100)
    for place in range(6):
        trace.op(0, "all-reduce.1", 10 * place, 5 + place, "all-reduce", long_name=all_reduce(1, 1000))
    assert "of one size" in why_not("hockney_alpha_s", trace.write(tmp_path / "tpu"))


def test_a_slow_rank_comes_back(tmp_path):
    """Device 3 computes 300 µs longer; the others wait for it in the all-reduce: 400 against 100, (400 − 100)/400."""
    trace = Trace()
    for device in CHIPS:
        late = 300 if device == 3 else 0
        trace.step(device, 0, 0, 1000)
        trace.op(device, "fusion.1", 0, 500 + late, "loop fusion")
        trace.op(device, "all-reduce.1", 500 + late, 400 - late, "all-reduce", long_name=all_reduce(1, 1000))
    found = value("straggler", trace.write(tmp_path / "tpu"))
    assert found.number == 0.75
    assert found.details["communication_s"] == {"0": 400e-6, "1": 400e-6, "2": 400e-6, "3": 100e-6}


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (2, 1), (4, 4), (4, 12)])
def test_gpipes_bubble_comes_back(tmp_path, stages, microbatches):
    """m + p − 1 ticks of 100 µs, each with its shift of 10: a stage has no microbatch in p − 1 of them."""
    ticks, trace = microbatches + stages - 1, Trace()
    pairs = "{" + ",".join(f"{{{stage},{stage + 1}}}" for stage in range(stages - 1)) + "}"
    for device in range(stages):
        trace.step(device, 0, 0, 110 * ticks)
        for tick in range(ticks):
            trace.op(device, "fusion.1", 110 * tick, 100, "loop fusion")
            trace.op(
                device,
                "collective-permute.1",
                110 * tick + 100,
                10,
                "collective-permute",
                long_name=permute(1, 1000, pairs),
                tf_op="jit(step)/pipeline.shift/ppermute",
            )
    folder = trace.write(tmp_path / "tpu")
    axes = {"pp": stages}
    found = value("bubble_size_pipeline", folder, axes=axes, microbatches=microbatches)
    assert found.number == pytest.approx((stages - 1) / ticks)
    assert found.details["gpipe_bubble_share"] == pytest.approx((stages - 1) / ticks)
    assert "give --microbatches" in why_not("bubble_size_pipeline", folder, axes=axes)
    assert "no axis pp" in why_not("bubble_size_pipeline", folder)
    other = why_not("bubble_size_pipeline", folder, axes=axes, microbatches=microbatches + 7)
    assert f"no {ticks + 7} ticks" in other


def two_axes(folder, *, steps=1):
    """pp2tp2: all-reduce@tp 0–10, permute@pp 30–40, all-reduce@tp 45–50 µs, of 1000, 500 and 1000 floats."""
    trace = Trace()
    for device in CHIPS:
        for step in range(steps):
            trace.step(device, step, 100 * step, 100)
            rows = [
                ("all-reduce.1", 0, 10, all_reduce(1, 1000, "{{0,1},{2,3}}")),
                ("collective-permute.2", 30, 10, permute(2, 500, "{{0,2},{1,3}}")),
                ("all-reduce.3", 45, 5, all_reduce(3, 1000, "{{0,1},{2,3}}")),
            ]
            for name, begin, length, line in rows:
                category = name.rpartition(".")[0]
                trace.op(device, name, 100 * step + begin, length, category, long_name=line)
    return trace.write(folder)


def test_the_window_lies_between_the_traffic_of_two_axes(tmp_path):
    """tp to pp 20 µs, pp to tp 5 µs: the median of both is 12.5."""
    folder = two_axes(tmp_path / "tpu", steps=3)
    found = value("traffic_window", folder, axes={"pp": 2, "tp": 2})
    assert found.number == pytest.approx(12.5e-6)
    assert {(row["from_axes"], row["to_axes"]): row["median_s"] for row in found.details["intervals"]} == pytest.approx(
        {("tp", "pp"): 20e-6, ("pp", "tp"): 5e-6}
    )
    assert "axes of the collectives are not known" in why_not("traffic_window", folder)


def test_the_largest_axis_share_is_of_bytes_on_the_wire(tmp_path):
    """tp: two all-reduces among 2 send 2·(1/2)·4000 bytes each, 8000; pp: a permute of 2000.  8000/10000."""
    folder = two_axes(tmp_path / "tpu")
    found = value("traffic_distribution", folder, axes={"pp": 2, "tp": 2})
    assert found.number == pytest.approx(0.8)
    assert found.details["wire_bytes"] == pytest.approx(10_000)
    assert "axes of the collectives are not known" in why_not("traffic_distribution", folder)


def inference(folder, *, card=CARD):
    """Steps of 5, 1, 2 and 3 ms."""
    trace, at = Trace(), 0
    for step, length in enumerate((5000, 1000, 2000, 3000)):
        trace.step(0, step, at, length)
        trace.op(0, "fusion.1", at, length / 2, "loop fusion")
        at += length
    return trace.write(folder, card=card)


def test_the_first_token_is_the_first_step_and_others_are_the_rest(tmp_path):
    folder = inference(tmp_path / "tpu")
    assert number("avg_step_time", folder) == pytest.approx(2.75e-3)
    assert number("ttft", folder) == 5e-3
    assert number("tpot", folder) == pytest.approx(2e-3)


def test_there_is_no_time_of_another_token_where_none_is_made(tmp_path):
    """vLLM's traces with output_len 1 are pieces of one prefill (theirs: tpot of such is a step)."""
    folder = inference(tmp_path / "tpu", card=CARD.replace("output_len: 3", "output_len: 1"))
    assert number("ttft", folder) == 5e-3
    assert "output_len is 1" in why_not("tpot", folder)
    training = inference(tmp_path / "train", card=CARD.replace("phase: inference", "phase: training"))
    assert "no inference" in why_not("ttft", training)
    (folder / "card.yaml").unlink()
    assert "no workload card" in why_not("tpot", folder)


def test_mfu_counts_leaves_over_the_step(tmp_path):
    """200 and 259 GFLOP in 1 ms: 459e9 ÷ (1e-3 · 918e12) = 50 %.  The loop around them counts none."""
    trace = Trace()
    for device in CHIPS:
        trace.step(device, 0, 0, 1000)
        trace.op(device, "while.1", 0, 400, "while", model_flops="459000000000")
        trace.op(device, "fusion.1", 0, 200, "convolution fusion", model_flops="200000000000")
        trace.op(device, "fusion.2", 200, 200, "convolution fusion", model_flops=259_000_000_000)
    folder = trace.write(tmp_path / "tpu", card=CARD)
    assert number("mfu", folder) == pytest.approx(50)
    strange = trace.write(tmp_path / "strange", card=CARD.replace("tpu_v6e", "tpu_v99"))
    assert "peak of 'tpu_v99' is not known" in why_not("mfu", strange)
    assert why_not("mfu", inference(tmp_path / "none")) == "the trace shows no model_flops"


def test_copies_beside_compute_cost_nothing(tmp_path):
    """A copy from 0 to 10 µs beside compute from 4 to 10: 4 of 100 µs alone.  1 MB in 10 µs: 100 GB/s."""
    trace = Trace()
    trace.step(0, 0, 0, 100)
    trace.op(0, "copy-start.3", 0, 0.01, "copy-start", bytes_accessed="1000000")
    trace.op(0, "fusion.1", 4, 6, "loop fusion")
    trace.op(0, "copy-done.3", 9.99, 0.01, "copy-done")
    folder = trace.write(tmp_path / "tpu")
    assert number("average_memory_bandwidth", folder) == pytest.approx(100)
    assert number("memory_transfer_overhead", folder) == pytest.approx(4)
    assert "no local copies" in why_not("memory_transfer_overhead", inference(tmp_path / "none"))


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_every_metric_says_something_of_a_trace_without_a_program(tmp_path, metric):
    """A finite number, or a reason."""
    subject = read_subject(Request(trace=two_axes(tmp_path / "tpu")))
    try:
        found = metric.measure(subject).number
    except NotApplicable as reason:
        found = len(str(reason))
    assert math.isfinite(found)
