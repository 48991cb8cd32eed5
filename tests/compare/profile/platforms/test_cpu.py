"""CPU profiles of both frameworks: real ones, against another reader and their own programs; and hosts made by hand."""

import gzip
import re
from collections import Counter

import numpy as np
import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.proto.program import write_hlo_text
from compare.hlo.text.module import read
from compare.profile.join.programs import read_protos
from compare.profile.platforms.cpu import END, op_events
from compare.profile.platforms.threads.launches import find_launches
from compare.profile.platforms.threads.rendezvous import find_arrivals
from compare.profile.platforms.threads.thread_timeline import NONE, Threads
from compare.profile.xplane.device_events import RAW
from compare.profile.xplane.reader import read_file
from tests.compare.profile.platforms.threads.host import Host, list_rows
from tests.places import PROFILES

ARMS = ("jax", "torchxla")
AXES = {"data": 2, "tensor": 4}


@pytest.fixture(scope="module", params=ARMS)
def arm(request):
    return request.param


@pytest.fixture(scope="module")
def raws():
    return {arm: op_events(read_file(PROFILES / f"{arm}.xplane.pb.gz")) for arm in ARMS}


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The host's events as `jax.profiler.ProfileData` reads them: for each thread tuples of name, start, end, stats."""
    jax = pytest.importorskip("jax.profiler")
    other_devices = {}
    for arm in ARMS:
        path = tmp_path_factory.mktemp(arm) / "host.xplane.pb"
        path.write_bytes(gzip.decompress((PROFILES / f"{arm}.xplane.pb.gz").read_bytes()))
        host = jax.ProfileData.from_file(str(path)).find_plane_with_name("/host:CPU")
        other_devices[arm] = [
            [(event.name, event.start_ns, event.end_ns, dict(event.stats)) for event in line.events]
            for line in host.lines
        ]
    return other_devices


def calls(threads):
    """Operations with what their event covers, and whether their end is marked inside that."""
    ends = {stats["_c"]: start for thread in threads for name, start, _, stats in thread if name.startswith("end: ")}
    for thread in threads:
        for name, start, end, stats in thread:
            if "hlo_op" in stats:
                yield name, stats, end - start, ends[stats["_p"]] <= end


def test_every_operation_is_there_once_under_its_own_name(arm, raws, others):
    events = raws[arm].events
    again = events["name"].str.startswith(END)
    assert Counter(events["name"][~again]) == Counter(name for name, *_ in calls(others[arm]))
    assert events["name"].str.removeprefix(END).tolist() == events["hlo_op"].tolist()
    assert events["wait_ns"][again].isna().all()  # no communication is in pieces


def test_an_operation_that_ends_in_its_call_lasts_as_long_and_others_longer(arm, raws, others):
    every = list(calls(others[arm]))
    inside = sum(length for *_, length, ended in every if ended)
    outside = sum(length for *_, length, ended in every if not ended)
    total = raws[arm].events["duration_ns"].sum()
    assert total >= inside + outside - 1
    if arm == "jax":
        per_device = Counter()
        for _, stats, length, _ in every:
            per_device[stats["device_ordinal"]] += length
        other_devices = raws[arm].events.groupby("device")["duration_ns"].sum()
        assert other_devices.to_dict() == pytest.approx(per_device, rel=1e-6)
        assert not outside
    else:
        assert outside
        assert total > inside + outside  # the call hands the multiplication over


def test_devices_and_runs_are_those_that_jax_names(raws, others):
    named = Counter((stats["device_ordinal"], stats["run_id"]) for _, stats, *_ in calls(others["jax"]))
    sizes = raws["jax"].events.groupby(["device", "run"]).size()
    assert sizes.to_dict() == named
    assert raws["jax"].notes == ()


@pytest.mark.parametrize("groups", [find_arrivals, lambda threads: None], ids=["known", "unknown"])
def test_where_jax_does_not_name_the_device_all_the_same_are_found(groups):
    space = read_file(PROFILES / "jax.xplane.pb.gz")
    (host,) = [plane for plane in space.planes if plane.name == "/host:CPU"]
    threads = Threads(host.lines, space.zero_ns)
    ops = np.flatnonzero(threads.numbers("device_ordinal") != NONE)
    ops = ops[np.asarray(threads.words("hlo_op")[ops] != "")]
    launches = find_launches(threads, ops, groups(threads))
    assert ops.size == 648
    assert (launches.device == threads.numbers("device_ordinal")[ops]).all()
    named = threads.numbers("run_id")[ops]
    assert len(set(zip(launches.run.tolist(), named.tolist(), strict=True))) == len(set(named.tolist())) == 3


def test_torch_xla_devices_are_the_only_ones_in_all_the_groups_that_they_meet(raws, others):
    """Any group of one axis has one device in common with any of the other."""
    events = raws["torchxla"].events
    first = min(start for thread in others["torchxla"] for _, start, _, stats in thread if "hlo_op" in stats)
    whose = {
        (row.name, round(row.start_ns - events["start_ns"].min())): (row.run, row.device)
        for row in events.itertuples(index=False)
    }
    may = {}
    for thread in others["torchxla"]:
        for name, start, end, stats in sorted(thread, key=lambda event: event[1]):
            if "hlo_op" in stats:
                around, its_thread = (start, end), whose[name, round(start - first)]
            elif name == "Rendezvous":
                assert around[0] <= start <= end <= around[1]
                group = re.search(r"global_devices=\[([\d,]+)\]", stats["name"])[1]
                may.setdefault(its_thread, set(range(8))).intersection_update(map(int, group.split(",")))
    # Fetching the results, by a program of its own, gathers over `data` alone.
    certain = {its_thread: groups for its_thread, groups in may.items() if len(groups) == 1}
    assert len(certain) == 3 * 8
    assert all(device in groups for (_, device), groups in may.items())


def test_each_device_does_the_same_once_in_each_run(arm, raws):
    for _, run in raws[arm].events.groupby("run"):
        calls = run[~run["name"].str.startswith(END)]
        done = [Counter(rows["hlo_op"]) for _, rows in calls.groupby("device")]
        assert len(done) == 8
        assert all(row == done[0] for row in done)


def test_collectives_run_as_often_as_their_own_program_says_and_only_they_wait(arm, raws):
    events = raws[arm].events
    programs = read_protos([read_file(PROFILES / f"{arm}.xplane.pb.gz")])
    ran = 0
    for name, program in programs.items():
        module_events = events[events["module"] == name]
        rows = {row.name: row.executions for row in collectives(read(write_hlo_text(program)), AXES)}
        waits = module_events[module_events["wait_ns"].notna()]
        assert set(waits["hlo_op"]) == (set(rows) if len(module_events) else set())
        for hlo_op, executions in rows.items() if len(module_events) else ():
            counts = module_events[module_events["hlo_op"] == hlo_op].groupby(["device", "run"]).size()
            assert set(counts) == {executions}
            assert len(counts) == 8 * module_events["run"].nunique()
            ran += int(counts.sum())
    assert ran == len(events[events["wait_ns"].notna()]) == 8 * 3 * {"jax": 3 + 1 + 1, "torchxla": 4 + 1}[arm]
    comms = events[events["wait_ns"].notna()]
    assert ((comms["wait_ns"] >= 0) & (comms["wait_ns"] <= comms["duration_ns"])).all()


def test_steps_are_the_marks_since_all_was_waited_for(arm, raws, others):
    marks = [
        (stats["step_num"], end - start)
        for thread in others[arm]
        for _, start, end, stats in thread
        if "step_num" in stats
    ]
    for _, steps in raws[arm].steps.groupby("device"):
        assert list(zip(steps["step"], steps["duration_ns"], strict=True)) == [
            (step, pytest.approx(length)) for step, length in marks
        ]
    assert raws[arm].steps["device"].nunique() == 8


def test_the_columns_are_those_of_every_platform(arm, raws):
    events = raws[arm].events
    assert {name: str(events[name].dtype) for name in events} == RAW
    assert events["main"].all()
    assert set(events["text"]) == set(events["category"]) == set(events["tf_op"]) == {""}


def test_devices_that_the_user_has_put_in_another_order_are_numbered_by_their_places(tmp_path):
    host = Host()
    sizes = {"num_replicas": 1, "num_partitions": 2, "run_id": 5}
    host["main"].event("CommonPjRtLoadedExecutable::Execute (jit_f)", 0, 50, _pt=5, _p=5, **sizes).hands_over(
        1, 2, at=1
    )
    for place, number in enumerate((1, 0)):
        thread = host[f"{place}"].region(1 + place, 60, 70)
        thread.event(f"[{place}] CommonPjRtLoadedExecutable::Execute (jit_f)", 61, 69, replica=0, partition=place,
                     global_device_id=number)  # fmt: skip
        host[f"{place}"].op("dot", 100 + place, 110, run_id=5, device_ordinal=number)
    host["2"].op("other", 200, 210, run_id=6, device_ordinal=7)
    raw = host.raw(tmp_path)
    assert list_rows(raw.events, "hlo_op", "line", "device") == [("dot", "0", 0), ("dot", "1", 1), ("other", "2", 9)]
    assert "devices are numbered by their places in the program, not as the process numbers them" in raw.notes


def test_programs_are_named_as_the_profile_lists_them(tmp_path):
    host = Host()
    host["a"].op("dot", 1, 2, module="jit_f").op("dot", 3, 4, module="jit_g")
    host["a"].event("add", 5, 6, hlo_op="add", hlo_module="jit_f", program_id=2**64 - 3)
    host["a"].event("sub", 7, 8, hlo_op="sub", hlo_module="jit_h")
    assert list_rows(host.raw(tmp_path).events, "module") == [
        ("jit_f(0)",), ("jit_g(0)",), ("jit_f(18446744073709551613)",), ("jit_h",),
    ]  # fmt: skip


def test_a_host_without_operations_has_no_events(tmp_path):
    host = Host()
    host["python"].event("sleep", 0, 10)
    raw = host.raw(tmp_path)
    assert len(raw.events) == 0
    assert raw.steps is None
