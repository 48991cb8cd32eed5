"""The Perfetto file: in the format, nothing lost, and read by Perfetto's own trace processor where it is at hand."""

import math
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compare.render.time.perfetto import write_trace
from compare.render.time.timeline_view import ProgramTimeline, assign_lanes
from compare.timeline.timeline import Timeline
from tests.compare.render.chrome_trace import processes, read, slices, threads
from tests.compare.render.timelines import (
    LABEL,
    LAYERS,
    MEASURED,
    TICKS,
    communicate,
    compute,
    make_timed,
    make_timeline,
    timed_program,
)

SHELLS = Path.home() / ".local/share/perfetto/prebuilts"
"""Where the perfetto package keeps the trace processor, once it has fetched it."""


def make_timelines() -> list[ProgramTimeline]:
    return [make_timed("jax"), make_timed("torchxla"), make_timed("jax", cell="cpu", source="measured", label=MEASURED)]


def write(folder: Path, timeline: Timeline, *, cell: str = "tpu") -> list[dict[str, Any]]:
    """The events of its file."""
    path = folder / "trace.json.gz"
    write_trace(path, timelines=[timed_program(timeline, cell=cell)])
    return read(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A step of both arms, and one that was measured."""
    path = tmp_path_factory.mktemp("perfetto") / "timeline.perfetto.json.gz"
    write_trace(path, timelines=make_timelines())
    return path


def test_arms_are_processes_that_say_what_they_are(place: Path) -> None:
    events = read(place)
    assert list(processes(events).values()) == [
        f"JAX prefill tpu, {LABEL}",
        f"TorchXLA prefill tpu, {LABEL}",
        f"JAX prefill cpu, {MEASURED}",
    ]


def test_devices_have_a_thread_for_compute_and_one_for_communication(place: Path) -> None:
    names = [name for (pid, _), name in threads(read(place)).items() if pid == 2]
    assert names == [
        "device 0 steps",
        "device 0 compute",
        "device 0 communication",
        "device 4 compute",
        "device 4 communication",
    ]


def test_every_communication_is_in_a_slice_of_its_verdict_and_tells_all_of_itself(place: Path) -> None:
    events = [event for event in slices(read(place)) if event["pid"] == 2]
    communications = [event for event in events if "args" in event]
    assert Counter(event["cat"] for event in communications) == {
        "inherent": 2 * TICKS * LAYERS * 2,
        "induced": 2 * TICKS * LAYERS * 3,
        "inflated": 2 * TICKS,
    }
    outer = Counter((e["tid"], e["ts"], e["dur"], e["name"], e["cname"]) for e in events if e["cat"] == "verdict")
    assert outer == Counter((e["tid"], e["ts"], e["dur"], e["cat"], e["cname"]) for e in communications)
    gather = next(event for event in communications if event["args"]["collective"] == "all-gather.11")
    assert gather["name"] == "all-gather over tp in layer.attention.core"
    assert gather["args"] == {
        "verdict": "induced",
        "bytes_by_verdict": "induced",
        "collective": "all-gather.11",
        "hlo_op": "all-gather.11",
        "name": "all-gather.11",
        "line": "XLA Ops",
        "kind": "all-gather",
        "axes": "tp",
        "scope": "layer.attention.core",
        "step": 0,
        "payload_bytes": 16_777_216,
        "exposed_ns": 100_000,
        "hidden_ns": 50_000,
    }
    reduce = next(event for event in communications if event["args"]["kind"] == "all-reduce")
    assert reduce["args"]["wait_ns"] == 40_000
    assert reduce["args"]["bytes_by_verdict"] == "80 % inherent, 20 % inflated"


def test_arrows_go_from_start_to_done_of_what_is_asynchronous(place: Path) -> None:
    events = read(place)
    arrows = [event for event in events if event["ph"] in "stf"]
    assert Counter((event["pid"], event["ph"]) for event in arrows) == {(2, mark): 2 * TICKS * LAYERS for mark in "stf"}
    names = threads(events)
    assert [names[2, event["tid"]] for event in arrows[:3]] == [
        "device 0 compute",
        "device 0 communication",
        "device 0 compute",
    ]
    assert [event["ts"] for event in arrows[:3]] == [0.0, 0.0, 51.0]


def test_what_is_in_flight_is_counted_over_all_devices_of_each_axis(place: Path) -> None:
    counters = [event for event in read(place) if event["ph"] == "C" and event["pid"] == 1]
    over_pp = [event for event in counters if event["name"] == "in flight over pp"]
    # Two devices are shown, each for four.
    assert [event["args"]["bytes"] for event in over_pp] == [8 * 16_777_216, 0] * TICKS
    assert over_pp[0]["ts"] == LAYERS * 1300.0
    assert {event["name"] for event in counters} == {"in flight over pp", "in flight over tp"}


def test_what_overlaps_is_laid_on_several_threads(tmp_path: Path) -> None:
    events = [
        compute(0, "fusion.1", 0.0, 10.0),
        compute(0, "fusion.2", 5.0, 10.0),
        compute(0, "fusion.3", 6.0, 2.0),
        communicate(0, "all-gather.11", 1.0, 8.0),
        communicate(0, "all-gather.12", 2.0, 3.0),
    ]
    timeline = make_timeline(events, steps=[(0, 0, 0.0, 20.0)])
    events = write(tmp_path, timeline)
    assert list(threads(events).values()) == [
        "device 0 steps",
        "device 0 compute",
        "device 0 compute 2",
        "device 0 communication",
        "device 0 communication 2",
    ]


def test_lanes_hold_what_fits() -> None:
    assert assign_lanes([0, 5, 10], [10, 20, 12], nest=False) == [0, 1, 0]
    assert assign_lanes([0, 5, 5, 8], [10, 10, 8, 12], nest=True) == [0, 0, 0, 1]
    assert assign_lanes([], [], nest=True) == []


def test_what_is_not_known_is_left_out_and_its_verdict_unknown(tmp_path: Path) -> None:
    nameless = (-1, "tf_XLA", "psum $é\n", "", "communication", "", "", "", "?", math.nan, 3.0, 4.0, math.nan)
    timeline = make_timeline([nameless], steps=[])
    events = write(tmp_path, timeline, cell="cpu")
    assert list(threads(events).values()) == ["unknown device communication"]
    (outer, inner) = slices(events)
    assert (outer["name"], inner["cat"], inner["name"]) == ("unknown", "unknown", "communication over unknown axes")
    assert inner["args"]["name"] == "psum $é\n"
    assert "payload_bytes" not in inner["args"]


def test_of_a_profile_with_too_many_events_one_step_is_written_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compare.render.time.perfetto.MOST_EVENTS", 5)
    events = [compute(0, f"fusion.{step}", 100.0 * step + at, 1.0) for step in range(3) for at in range(2)]
    steps = [(0, 0, 0.0, 90.0), (0, 1, 100.0, 50.0), (0, 2, 200.0, 70.0)]
    timeline = make_timeline(events, steps=steps, source="measured", label=MEASURED)
    written = write(tmp_path, timeline, cell="cpu")
    assert processes(written) == {1: f"JAX decode cpu, step 2 of 3, {MEASURED}"}
    assert [event["name"] for event in slices(written)] == ["decode step 2", "fusion.2", "fusion.2"]


def test_parts_of_what_is_not_there_have_no_arrow(tmp_path: Path) -> None:
    part = compute(0, "all-gather-start.11", 50.0, 5.0, role="part", of="all-gather.11")
    timeline = make_timeline([part, communicate(0, "all-gather.11", 0.0, 20.0)], steps=[])
    events = write(tmp_path, timeline)
    assert not [event for event in events if event["ph"] in "stf"]


def test_the_same_timelines_give_the_same_bytes(place: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json.gz"
    for _ in range(2):
        write_trace(again, timelines=make_timelines())
        assert again.read_bytes() == place.read_bytes()


def test_perfetto_s_trace_processor_reads_it(place: Path) -> None:
    processor = pytest.importorskip("perfetto.trace_processor", reason="the perfetto package is not installed")
    shells = [shutil.which("trace_processor_shell"), *sorted(map(str, SHELLS.glob("trace_processor_shell*")))]
    shell = next((path for path in shells if path), None)
    if not shell:
        pytest.skip(f"no trace_processor_shell on the PATH or in {SHELLS}: the perfetto package fetches it when online")
    with processor.TraceProcessor(trace=str(place), config=processor.TraceProcessorConfig(bin_path=shell)) as opened:
        check_queries(lambda sql: [vars(row) for row in opened.query(sql)])


def check_queries(ask: Any) -> None:
    """What Perfetto makes of the file of `place`; `ask` takes SQL and gives a row a dict."""
    assert ask("select name from stats where severity in ('error', 'data_loss') and value > 0") == []
    answers = ask(
        "select count(*) n, cast(sum(dur) as int) total, max(depth) depth from slice join thread_track on "
        "thread_track.id = track_id join thread using (utid) join process using (upid) "
        "where category = 'induced' and process.name glob 'TorchXLA*'"
    )
    # Two devices × 5 ticks × 16 layers × (150 + 25 + 25 µs), each inside the slice of its verdict.
    assert answers == [{"n": 480, "total": 160 * 200_000, "depth": 1}]
    assert ask("select count(*) n from flow") == [{"n": 2 * 160}]
    assert ask("select distinct extract_arg(arg_set_id, 'args.axes') axes from slice where category = 'inflated'") == [
        {"axes": "pp"}
    ]
    counters = ask(
        "select cast(max(value) as int) most from counter join process_counter_track t on t.id = track_id "
        "where t.name glob 'in flight over pp*'"
    )
    assert counters == [{"most": 8 * 16_777_216}]
