"""Queries that ship, on runs whose answers are worked out by hand."""

import pytest

from compare.query import query_runs
from tests.compare.query.run_folders import PROGRAM, write_run


def answer(name, folder, *columns):
    return query_runs(f"select {', '.join(columns)} from ({query_text(name)})", folder).fetchall()


def query_text(name):
    from compare.query.named_queries import read_query

    return read_query(name).rstrip().removesuffix(";")


def collective(axes, step_wire_bytes, phase="prefill", **more):
    row = {"phase": phase, "arm": "jax", "cell": "tpu", "axes": axes, "executions": 1, "inherent_bytes": 0}
    return {**row, "step_wire_bytes": step_wire_bytes, "inflated_bytes": 0, "induced_bytes": step_wire_bytes, **more}


def test_volume_of_a_device_of_all_devices_and_of_a_token(tmp_path):
    first = collective("tp", 100, executions=5, inherent_bytes=60, inflated_bytes=30, induced_bytes=10)
    rows = [first, collective("tp", 20), collective("pp", 8), collective("tp", 120, "decode")]
    unknown = collective("tp", None, executions=None, inherent_bytes=None)
    run = write_run(tmp_path / "run", batch=8, seq=128, tables={"collectives": [*rows, unknown]})
    columns = ("phase", "axes", "step_wire_bytes", "all_devices_wire_bytes", "wire_bytes_per_token", "unknown_rows")
    assert answer("volume-by-axis", run, *columns) == [
        ("prefill", "tp", 120, 960, 960 / 1024, 1),  # 8 devices; 8 · 128 tokens
        ("prefill", "pp", 8, 64, 0.0625, 0),
        ("decode", "tp", 120, 960, 120, 0),  # 8 tokens
    ]
    columns = ("executions", "inherent_bytes", "inflated_bytes", "induced_bytes")
    assert answer("volume-by-axis", run, *columns) == [(6, 60, 30, 30), (1, 0, 0, 8), (1, 0, 0, 120)]


def communication(device, step, axes, start_ns, stop_ns):
    where = {"device": device, "step": step, "stands_for": 2 if device == 0 else 1, "role": "communication"}
    return {
        **PROGRAM,
        **where,
        "collective": f"all-reduce.{axes}",
        "axes": axes,
        "payload_bytes": 10.0,
        "start_ns": float(start_ns),
        "duration_ns": float(stop_ns - start_ns),
    }


EVENTS = [
    communication(0, 0, "tp", 0, 10),
    communication(0, 0, "tp", 12, 20),
    communication(0, 0, "pp", 25, 30),  # 5 after the last of tp
    communication(0, 0, "tp", 28, 40),  # overlaps: -2
    communication(1, 0, "tp", 0, 10),
    communication(1, 0, "pp", 16, 20),  # 6
    communication(1, 0, "tp", 21, 25),  # 1
    communication(1, 1, "tp", 100, 150),
    communication(1, 1, "tp", 110, 120),
    communication(1, 1, "pp", 155, 160),  # 5, from the end of the longer one
    communication(1, -1, "tp", 170, 180),  # outside of all steps
    {**communication(1, 1, "pp", 130, 140), "role": "part"},
]


@pytest.fixture
def windows(tmp_path):
    collectives = [
        {"phase": "prefill", "arm": "jax", "cell": "tpu", "name": f"all-reduce.{axes}", "wire_bytes": size}
        for axes, size in (("tp", 100), ("pp", 7))
    ]
    intervals = [
        {**PROGRAM, "from_axes": source, "to_axes": target, "n": n, "median_ns": median_ns}
        for source, target, n, median_ns in (("tp", "pp", 4, 5.0), ("pp", "tp", 3, -2.0), ("tp", "tp", 3, 2.0))
    ]
    times = [{**PROGRAM, "split_by": "all", "devices": 3, "steps": 2}]
    tables = {"events": EVENTS, "collectives": collectives, "intervals": intervals, "times": times}
    return write_run(tmp_path / "run", tables=tables)


def test_windows_lie_between_traffic_of_different_axes(windows):
    columns = "device, step, from_axes, to_axes, interval_ns, payload_bytes_after, wire_bytes_after, stands_for"
    assert query_runs(f"select {columns} from windows order by device, step, interval_ns desc", windows).fetchall() == [
        (0, 0, "tp", "pp", 5, 10, 7, 2),
        (0, 0, "pp", "tp", -2, 10, 100, 2),
        (1, 0, "tp", "pp", 6, 10, 7, 1),
        (1, 0, "pp", "tp", 1, 10, 100, 1),
        (1, 1, "tp", "pp", 5, 10, 7, 1),
    ]


def test_what_follows_a_window_is_a_mean_of_devices_and_steps(windows):
    columns = ("from_axes", "to_axes", "n", "median_ns", "median_wire_bytes_after", "step_wire_bytes_after")
    assert answer("windows-across-axes", windows, *columns) == [
        ("pp", "tp", 3, -2, 100, 300 / 6),  # 2 · 100 + 100, over 3 devices · 2 steps
        ("tp", "pp", 4, 5, 7, 28 / 6),
    ]
    assert answer("intervals-within-axes", windows, "axes", "n", "median_ns") == [("tp", 3, 2)]


def plan(folder, mesh, **steps):
    times = [
        {
            **PROGRAM,
            "arm": arm,
            "split_by": part,
            "is_default": True,
            "step_ns": step_ns,
            "compute_ns": 1.0,
            "exposed_ns": 2.0,
            "devices": 8,
            "steps": 1,
        }
        for arm, step_ns in steps.items()
        for part in ("all", "axes")
    ]
    return write_run(folder / mesh, mesh=mesh, batch=8, seq=128, tables={"times": times})


def test_plans_are_ranked_by_each_framework_s_step(tmp_path):
    plan(tmp_path, "tp8", jax=100.0, torchxla=400.0)
    plan(tmp_path, "dp2tp4", jax=200.0, torchxla=300.0)
    plan(tmp_path, "tp4", jax=50.0)  # of another slice
    columns = ("arm", "topology", "place", "mesh", "step_over_fastest", "tokens_per_s")
    assert answer("plan-ranking", tmp_path, *columns) == [
        ("jax", "v5e:2x2", 1, "tp4", 1, pytest.approx(1024 / 50e-9)),
        ("jax", "v5e:2x4", 1, "tp8", 1, pytest.approx(1024 / 100e-9)),
        ("jax", "v5e:2x4", 2, "dp2tp4", 2, pytest.approx(1024 / 200e-9)),
        ("torchxla", "v5e:2x4", 1, "dp2tp4", 1, pytest.approx(1024 / 300e-9)),
        ("torchxla", "v5e:2x4", 2, "tp8", pytest.approx(4 / 3), pytest.approx(1024 / 400e-9)),
    ]
    columns = ("topology", "jax_mesh", "jax_plans", "torchxla_mesh", "torchxla_step_ns", "same_plan")
    assert answer("best-plan", tmp_path, *columns) == [
        ("v5e:2x2", "tp4", 1, None, None, None),
        ("v5e:2x4", "tp8", 2, "dp2tp4", 300, False),
    ]


def test_what_a_framework_adds_is_told_in_bytes_of_a_token_and_in_avoidable_time(tmp_path):
    program = {"phase": "decode", "arm": "torchxla", "cell": "tpu"}
    totals = [
        {
            **program,
            "is_default": True,
            "wire_bytes": 5,
            "framework_induced_bytes": 4,
            "common_bytes": 1,
            "asked_bytes": 2,
            "emitted_over_inherent": 2.5,
        },
        {**program, "cell": "tpu+einsum", "is_default": False, "wire_bytes": 1, "framework_induced_bytes": None},
    ]
    whole = {**program, "source": "modelled", "split_by": "all", "part": "", "step_ns": 50.0, "exposed_ns": 9.0}
    parts = [
        {**whole, "split_by": "verdict", "part": part, "exposed_ns": ns}
        for part, ns in (("inherent", 2.0), ("inflated", 3.0), ("induced", 4.0), ("unknown", 0.0))
    ]
    run = write_run(tmp_path / "run", tables={"totals": totals, "times": [whole, *parts]})
    columns = ("cell", "framework_induced_bytes_per_token", "step_ns", "exposed_ns", "avoidable_exposed_ns")
    assert answer("framework-induced", run, *columns) == [
        ("tpu", 4, 50, 9, 7),  # 4 bytes of each of 8 devices, 8 tokens
        ("tpu+einsum", None, None, None, None),
    ]
    columns = ("wire_bytes", "asked_bytes", "common_bytes", "emitted_over_inherent")
    assert answer("framework-induced", run, *columns) == [(5, 2, 1, 2.5), (1, None, None, None)]


def test_the_bubble_of_stages_is_their_mean(tmp_path):
    stages = [{"stage": at, "bubble_ns": ns, "pipeline_ns": 100} for at, ns in ((0, 10), (1, 30))]
    pipeline = {"bubble_share": 0.2, "gpipe_bubble_share": 0.2, "stages": stages}
    timings = {
        cell: {"source": "modelled", "pipeline": found} for cell, found in (("tpu", pipeline), ("tpu+gspmd", None))
    }
    run = write_run(tmp_path / "run", programs=timings)
    columns = ("cell", "pp", "microbatches", "bubble_share", "bubble_ns", "pipeline_ns")
    assert answer("bubble", run, *columns) == [("tpu", 2, 4, 0.2, 20, 100)]


def test_the_ten_collectives_that_expose_most_are_named(tmp_path):
    collectives = [
        {"collective": f"all-reduce.{n}", "exposed_ns": n * 10, "communication_ns": n * 10} for n in range(1, 13)
    ]
    times = [{**PROGRAM, "split_by": "all", "step_ns": 1200.0}]
    programs = {"tpu": {"source": "modelled", "collectives": collectives}}
    run = write_run(tmp_path / "run", tables={"times": times}, programs=programs)
    rows = answer("waits", run, "place", "collective", "exposed_share")
    assert rows[0] == (1, "all-reduce.12", 0.1)
    assert rows[-1] == (10, "all-reduce.3", 0.025)
