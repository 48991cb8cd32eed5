"""CPU profiles: a real one, against another reader and its own programs; and hosts made by hand."""

import gzip
from collections import Counter

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.proto.program import write_hlo_text
from compare.hlo.text.module import read
from compare.profile.join.carried_programs import read_protos
from compare.profile.join.profile import read_profile
from compare.profile.platforms.cpu import op_events
from compare.profile.xplane.device_events import RAW
from compare.profile.xplane.reader import read_file
from compare.timeline.errors import TimingError
from tests.compare.profile.platforms.threads.host import Host, list_rows
from tests.places import PROFILES

AXES = {"data": 2, "tensor": 4}


@pytest.fixture(scope="module")
def space():
    return read_file(PROFILES / "jax.xplane.pb.gz")


@pytest.fixture(scope="module")
def raw(space):
    return op_events(space)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The host's events as `jax.profiler.ProfileData` reads them: for each thread tuples of name, start, end, stats."""
    jax = pytest.importorskip("jax.profiler")
    path = tmp_path_factory.mktemp("jax") / "host.xplane.pb"
    path.write_bytes(gzip.decompress((PROFILES / "jax.xplane.pb.gz").read_bytes()))
    host = jax.ProfileData.from_file(str(path)).find_plane_with_name("/host:CPU")
    return [
        [(event.name, event.start_ns, event.end_ns, dict(event.stats)) for event in line.events] for line in host.lines
    ]


def calls(threads):
    """Operations with what their event covers, and whether their end is marked inside that."""
    ends = {stats["_c"]: start for thread in threads for name, start, _, stats in thread if name.startswith("end: ")}
    for thread in threads:
        for name, start, end, stats in thread:
            if "hlo_op" in stats:
                yield name, stats, end - start, ends[stats["_p"]] <= end


def test_every_operation_is_there_once_under_its_own_name(raw, other):
    assert Counter(raw.events["name"]) == Counter(name for name, *_ in calls(other))
    assert raw.events["name"].tolist() == raw.events["hlo_op"].tolist()


def test_operations_that_end_in_their_calls_last_as_long(raw, other):
    per_device = Counter()
    for _, stats, length, ended in calls(other):
        assert ended
        per_device[stats["device_ordinal"]] += length
    assert raw.events.groupby("device")["duration_ns"].sum().to_dict() == pytest.approx(per_device, rel=1e-6)


def test_devices_and_runs_are_those_that_jax_names(raw, other):
    named = Counter((stats["device_ordinal"], stats["run_id"]) for _, stats, *_ in calls(other))
    assert raw.events.groupby(["device", "run"]).size().to_dict() == named
    assert raw.notes == ()


def test_a_profile_whose_operations_name_no_device_is_refused_in_one_line():
    """torch_xla 2.9's own, of CPU devices."""
    with pytest.raises(TimingError, match=r"torchxla\.xplane\.pb\.gz: its operations name no device") as caught:
        read_profile([PROFILES / "torchxla.xplane.pb.gz"], axes=AXES)
    assert "`compare.run --execute cpu`" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_of_operations_that_name_no_device_beside_others_the_device_is_unknown(tmp_path):
    host = Host()
    host["a"].op("dot", 1, 2, run_id=5, device_ordinal=1).op("add", 3, 4, run_id=None)
    raw = host.raw(tmp_path)
    assert list_rows(raw.events, "hlo_op", "device", "run") == [("dot", 1, 5), ("add", -1, -1)]
    assert "the device of 1 of 2 operations is not shown" in raw.notes


def test_each_device_does_the_same_once_in_each_run(raw):
    for _, run in raw.events.groupby("run"):
        done = [Counter(rows["hlo_op"]) for _, rows in run.groupby("device")]
        assert len(done) == 8
        assert all(row == done[0] for row in done)


def test_collectives_run_as_often_as_their_own_program_says_and_only_they_wait(raw, space):
    events = raw.events
    (name,) = set(events["module"])
    program = read_protos([space])[name]
    rows = {row.name: row.executions for row in collectives(read(write_hlo_text(program)), AXES)}
    comms = events[events["wait_ns"].notna()]
    assert set(comms["hlo_op"]) == set(rows)
    for hlo_op, executions in rows.items():
        counts = comms[comms["hlo_op"] == hlo_op].groupby(["device", "run"]).size()
        assert set(counts) == {executions}
        assert len(counts) == 8 * 3
    assert len(comms) == 8 * 3 * (3 + 1 + 1)
    assert ((comms["wait_ns"] >= 0) & (comms["wait_ns"] <= comms["duration_ns"])).all()


def test_steps_are_the_marks_since_all_was_waited_for(raw, other):
    marks = [
        (stats["step_num"], end - start) for thread in other for _, start, end, stats in thread if "step_num" in stats
    ]
    for _, steps in raw.steps.groupby("device"):
        assert list(zip(steps["step"], steps["duration_ns"], strict=True)) == [
            (step, pytest.approx(length)) for step, length in marks
        ]
    assert raw.steps["device"].nunique() == 8


def test_the_columns_are_those_of_every_platform(raw):
    events = raw.events
    assert {name: str(events[name].dtype) for name in events} == RAW
    assert events["main"].all()
    assert set(events["text"]) == set(events["category"]) == set(events["tf_op"]) == {""}


def test_devices_that_the_user_has_put_in_another_order_are_numbered_by_their_places(tmp_path):
    host = Host()
    sizes = {"num_replicas": 1, "num_partitions": 2, "run_id": 5}
    host["main"].event("CommonPjRtLoadedExecutable::Execute (jit_f)", 0, 50, _pt=5, _p=5, **sizes)
    for place, number in enumerate((1, 0)):
        host[f"{place}"].event(
            f"[{place}] CommonPjRtLoadedExecutable::Execute (jit_f)",
            61,
            69,
            replica=0,
            partition=place,
            global_device_id=number,
            _ct=5,
            _c=5,
        )
        host[f"{place}"].op("dot", 100 + place, 110, run_id=5, device_ordinal=number)
    host["2"].op("other", 200, 210, run_id=6, device_ordinal=7)
    raw = host.raw(tmp_path)
    assert list_rows(raw.events, "hlo_op", "line", "device") == [("dot", "0", 0), ("dot", "1", 1), ("other", "2", 9)]
    assert "devices are numbered by their places in the program, not as the process numbers them" in raw.notes


def test_programs_are_named_as_the_profile_lists_them(tmp_path):
    host = Host()
    host["a"].op("dot", 1, 2, module="jit_f").op("dot", 3, 4, module="jit_g")
    host["a"].event("add", 5, 6, hlo_op="add", hlo_module="jit_f", program_id=2**64 - 3)
    host["a"].event("sub", 7, 8, hlo_op="sub", hlo_module="jit_h", run_id=1, device_ordinal=0)
    assert list_rows(host.raw(tmp_path).events, "module") == [
        ("jit_f(0)",),
        ("jit_g(0)",),
        ("jit_f(18446744073709551613)",),
        ("jit_h",),
    ]


def test_a_host_without_operations_has_no_events(tmp_path):
    host = Host()
    host["python"].event("sleep", 0, 10)
    raw = host.raw(tmp_path)
    assert len(raw.events) == 0
    assert raw.steps is None
