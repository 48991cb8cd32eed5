"""Chrome traces become the planes and lines that `xplane.pb` has, with times to the picosecond."""

import gzip
import json
import time

import pytest

from compare.metrics.summary import trace_summary
from compare.profile.chrome import columns, events
from compare.profile.chrome.space import read_trace
from compare.profile.join.profile import read_profile
from compare.profile.xplane.reader import profile_files
from compare.timeline.errors import TimingError
from tests.compare.profile.chrome.traces import Trace, all_reduce
from tests.compare.timeline.scenes import FUSION, REDUCE, WHILE, done, start
from tests.compare.timeline.spaces import Ref, Space, tpu
from tests.places import EXAMPLE

AXES = {"data": 2, "tensor": 2}


def small(**more):
    """4 devices, one step of 10 µs: 6 µs of compute, then an all-reduce of 4000 bytes for 3 µs."""
    trace = Trace(**more)
    for device in range(4):
        trace.step(device, 0, 0, 10)
        trace.op(device, "fusion.2", 0, 6, "loop fusion")
        trace.op(device, "all-reduce.1", 6, 3, "all-reduce", long_name=all_reduce(1, 1000, "{{0,1},{2,3}}"))
    return trace


def read(trace, folder, axes=AXES, **more):
    return read_profile(profile_files(trace.write(folder)), axes=axes, **more)


def rows(timeline, *columns):
    return [tuple(row) for row in timeline.events[list(columns)].itertuples(index=False)]


def test_a_trace_is_a_timeline_like_any_other(tmp_path):
    timeline = read(small(), tmp_path)
    assert (timeline.source, timeline.label, timeline.num_devices) == ("measured", "measured on 4 TPU devices", 4)
    columns = ("device", "role", "kind", "axes", "payload_bytes", "start_ns", "duration_ns")
    assert rows(timeline, *columns)[1] == (0, "communication", "all-reduce", "tensor", 4000, 6000, 3000)
    assert trace_summary(timeline).per_step.communication_fraction == 0.3
    assert timeline.notes == ()


def test_without_axes_and_groups_axes_read_unknown(tmp_path):
    assert list(trace_summary(read(small(), tmp_path, axes={})).per_step.by_axes) == ["?"]


@pytest.mark.parametrize("form", ["plain", "gzipped", "list", "indented", "tail", "numbers"])
def test_every_spelling_of_the_format_reads_alike(tmp_path, form):
    trace, name = small(), "host.trace.json.gz" if form == "gzipped" else "host.trace.json"
    folder = trace.write(tmp_path, name=name)
    text = {
        "list": json.dumps(trace.events),
        "indented": json.dumps({"traceEvents": trace.events}, indent=2),
        "tail": json.dumps({"traceEvents": trace.events, "otherData": {"list": [[1], {"a": [2]}]}}),
        "numbers": trace.text().replace('_ps": "', '_ps": ').replace('"}}', "}}").replace('", "', ', "'),
    }.get(form)
    if form == "numbers":
        text = json.dumps(json.loads(trace.text(), object_hook=as_numbers))
    if text is not None:
        (folder / name).write_text(text)
    timeline = read_profile(profile_files(folder), axes=AXES)
    (tmp_path / "plain").mkdir()
    expected = read(small(), tmp_path / "plain")
    assert timeline.events.equals(expected.events)
    assert timeline.steps.equals(expected.steps)


def as_numbers(value):
    return {key: int(word) if key.endswith("_ps") else word for key, word in value.items()}


def test_events_are_read_in_batches(tmp_path, monkeypatch):
    trace = small()
    trace.host('a},{"b', 0, 1, long_name='x},{"y":[{"z":1},{"w":2}]', inner=[{"a": 1}, {"b": 2}])
    expected = read(trace, tmp_path / "one")
    monkeypatch.setattr(events, "_BATCH", 3)
    assert read(trace, tmp_path / "several").events.equals(expected.events)


def test_picoseconds_come_from_the_device(tmp_path):
    """`ts` is rounded to ns and counts from another time: 6.000123 µs later, an operation of 1.000001 µs."""
    trace = Trace()
    zero = 2_899_545_218_721.25
    for number, (begin, length) in enumerate([(0, 1_000_001), (6_000_123, 1_000_001), (9_999_999, 1)]):
        exact = {"device_offset_ps": str(5_000 + begin), "device_duration_ps": str(length)}
        shown = zero + round(begin / 1e6, 3), round(length / 1e6, 3)
        trace.add(0, "XLA Ops", f"fusion.{number}", *shown, hlo_category="loop fusion", **exact)
    trace.add(0, "Steps", "0", zero, 11)
    timeline = read(trace, tmp_path, axes={})
    first = timeline.events["start_ns"].iloc[0]
    assert list(timeline.events["start_ns"] - first) == pytest.approx([0, 6000.123, 9999.999], abs=1e-6)
    assert list(timeline.events["duration_ns"]) == pytest.approx([1000.001, 1000.001, 0.001], abs=1e-9)
    assert list(timeline.events["step"]) == [0, 0, 0]


def test_offsets_of_another_clock_are_noted_and_not_used(tmp_path):
    trace = Trace()
    for number in range(3):
        trace.op(0, f"fusion.{number}", 10 * number, 5, "loop fusion")
    trace.events[-1]["args"]["device_offset_ps"] = "900000000"
    timeline = read(trace, tmp_path, axes={})
    assert list(timeline.events["start_ns"]) == [0, 10_000, 20_000]
    assert any("of another clock" in note for note in timeline.notes)


def test_what_is_odd_is_counted_and_never_dropped_in_silence(tmp_path):
    trace = small()
    trace.events += [
        {"ph": "X", "name": "no time", "pid": 10, "tid": 2},
        {"ph": "B", "name": "begins", "pid": 10, "tid": 2, "ts": 1},
        {"ph": "X", "name": ["no word"], "pid": 10, "tid": 2, "ts": 1, "dur": 1},
        {"ph": "X", "name": "strange", "pid": 10, "tid": 2, "ts": 1, "dur": 1, "args": {"device_offset_ps": "soon"}},
        "no event",
        {},
    ]
    trace.meta("thread_name", 10, "Unheard Of", tid=9)
    trace.events.append({"ph": "X", "name": "x", "pid": 10, "tid": 9, "ts": 1, "dur": 1})
    timeline = read(trace, tmp_path)
    notes = " | ".join(timeline.notes)
    assert "1 events of the trace have no time or duration: left out" in notes
    assert "1 events of the trace are of phase 'B'" in notes
    assert notes.count("cannot be read (") == 3
    assert "line 'Unheard Of': 1 events left out" in notes
    assert trace_summary(timeline).per_step == trace_summary(read(small(), tmp_path / "plain")).per_step


def test_threads_without_names_are_told_apart_by_what_stands_on_them(tmp_path):
    trace = small(named=False)
    trace.module(0, 0, 10)
    expected = trace_summary(read(small(), tmp_path / "named")).per_step
    assert trace_summary(read(trace, tmp_path / "unnamed")).per_step == expected


@pytest.mark.parametrize("name", ["StepMarker", "$core.py:331 step", "$/vllm/v1/engine/core.py:402 step"])
def test_marks_of_the_host_are_steps_where_the_device_has_none(tmp_path, name):
    trace = Trace()
    for number in range(3):
        trace.host(name, 20 * number, 15)
        trace.op(0, "fusion.1", 20 * number + 1, 5, "loop fusion")
    timeline = read(trace, tmp_path, axes={})
    assert list(timeline.steps["duration_ns"]) == [15_000] * 3
    assert list(timeline.events["step"]) == [0, 1, 2]


def test_payload_without_hlo_is_the_traces_own_and_said_so(tmp_path):
    trace = Trace()
    trace.op(0, "all-reduce.1", 0, 5, "all-reduce", shape_with_layout="f32[1000]{0:T(1024)}", bytes_accessed="8000")
    trace.op(0, "reduce-scatter.1", 5, 5, "reduce-scatter", shape_with_layout="f32[250]{0}", bytes_accessed="5000")
    trace.op(0, "all-reduce.2", 10, 5, "all-reduce fusion", bytes_accessed="8000")
    timeline = read(trace, tmp_path, axes={})
    assert list(timeline.events["payload_bytes"])[:2] == [4000, 5000]
    assert timeline.events["payload_bytes"].isna().iloc[2]  # what a fusion moves besides is not known
    assert any("payload of 2 communications is the trace's own" in note for note in timeline.notes)


def test_xprofs_own_trace_of_a_profile_reads_as_the_profile_does(tmp_path):
    """The converter that writes users' traces, as a second implementation."""
    converter = pytest.importorskip("xprof.convert.raw_to_tool_data")
    space = Space()
    for device in range(4):
        ops = [
            (WHILE, 0, 900),
            (FUSION, 0, 300.123),
            (REDUCE, 300.5, 99.25),
            (start(4), 400, 2),
            (FUSION, 402, 100),
            (done(4), 502, 50),
        ]
        told = []
        for text, begin, length in ops:
            times = {"device_offset_ps": round(begin * 1000), "device_duration_ps": round(length * 1000)}
            category = Ref(text.partition(" = ")[0].lstrip("%").partition(".")[0])
            told.append((text, begin, length, {"stats": times, "about": {"hlo_category": category, "model_flops": 7}}))
        tpu(space, device, told, Steps=[("0", 0, 1000)], XLA_Modules=[("jit_f(17)", 0, 1000)])
    path = space.write(tmp_path)
    data, _ = converter.xspace_to_tool_data([str(path)], "trace_viewer", {})
    file = tmp_path / "of_xprof.trace.json"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    ours, theirs = (read_profile([place], axes=AXES) for place in (path, file))
    assert trace_summary(theirs).per_step == trace_summary(ours).per_step
    columns = ["device", "hlo_op", "role", "collective", "kind", "axes", "payload_bytes", "step", "flops"]
    assert theirs.events[columns].astype(object).equals(ours.events[columns].astype(object))
    assert list(theirs.events["duration_ns"]) == pytest.approx(list(ours.events["duration_ns"]), abs=1e-6)


def cut(text):
    return text[: len(text) * 2 // 3]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        (cut(small().text()), "cut, or damaged"),
        (small().text()[:-1] + "} nonsense", "cut, or damaged"),
        ("{", "cut, or damaged"),
        ('{"a": 1}', "JSON, and no trace"),
        ("[1, 2", "cut, or damaged"),
        ("hello", "no trace: JSON with traceEvents was expected"),
        ('{"traceEvents": []}', "the trace is empty"),
        ('{"traceEvents": [{}]}', "the trace is empty"),
        (json.dumps({"deviceProperties": [], "traceEvents": small().events}), "a trace of GPUs"),
        (small(kind="GPU").text(), "a profile of GPUs"),
        ('{"x": ' + "[" * 100_000 + '], "traceEvents": []}', "no JSON of a trace"),
    ],
)
def test_what_is_no_trace_is_one_line_that_names_the_file(tmp_path, text, complaint):
    path = tmp_path / "host.trace.json"
    path.write_text(text)
    with pytest.raises(TimingError) as caught:
        read_profile([path], axes={})
    assert complaint in str(caught.value)
    assert "host.trace.json" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "repeated", "complaint"),
    [
        ("", " ", "the file is empty"),
        ('{"traceEvents": [', " ", "cut, or damaged"),
        ("[", "{},", "more than 33,554,432 objects"),
        ("[", "1,", "is no event, and it has more than 67,108,864 values"),
        ("[", '{"ph":"X"', "more than 33,554,432 objects"),
    ],
)
def test_half_a_gigabyte_of_nothing_is_refused_within_seconds(tmp_path, before, repeated, complaint):
    path = tmp_path / "a.trace.json.gz"
    packed = [gzip.compress(each.encode(), 1) for each in (before, repeated * ((8 << 20) // len(repeated)))]
    path.write_bytes(packed[0] + packed[1] * 64)  # a gzip file may have several parts
    begun = time.process_time()
    with pytest.raises(TimingError, match=complaint):
        read_profile([path], axes={})
    assert time.process_time() - begun < 5


def test_a_trace_that_is_larger_than_what_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "MOST_BYTES", 1 << 21)
    path = tmp_path / "a.trace.json.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 22)))
    with pytest.raises(TimingError, match=r"a\.trace\.json\.gz: the trace has more than 2,097,152 bytes"):
        read_profile([path], axes={})


def test_a_trace_of_names_alone_is_refused_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "MOST_NAMES", 3)
    event = '{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "name": "a"}'
    for count in (3, 4):
        path = tmp_path / f"{count}.trace.json"
        path.write_text(f'[{event}, {", ".join(["""{"ph": "M", "name": "process_name", "pid": 1}"""] * count)}]')
    assert len(columns.read_events((tmp_path / "3.trace.json").read_bytes()).kind) == 1
    with pytest.raises(TimingError, match="names more than 3 processes and threads"):
        read_profile([tmp_path / "4.trace.json"], axes={})


def test_a_process_of_the_cpu_leaves_other_peoples_devices_as_they_are(tmp_path):
    """Only `compare.export` lays out the threads of a CPU as one device."""
    trace = small()
    trace.events.append({"ph": "M", "name": "process_name", "pid": 900, "args": {"name": "/device:CPU:0"}})
    path = tmp_path / "host.trace.json"
    path.write_text(trace.text())
    assert read_trace(path).one_at_a_time


def test_a_reports_own_drawing_is_no_profile():
    with pytest.raises(TimingError, match=r"a drawing of timelines that a report makes for Perfetto; give a profile"):
        read_trace(EXAMPLE / "timeline.perfetto.json.gz")


def test_a_cut_gzip_file_is_one_line(tmp_path):
    file = next(small().write(tmp_path, name="host.trace.json.gz").iterdir())
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(TimingError, match="cut or damaged"):
        read_trace(file)


def test_a_trace_is_read_once_where_it_lies_gzipped_too(tmp_path):
    small().write(tmp_path)
    small().write(tmp_path / "gzip", name="host.trace.json.gz")
    assert profile_files(tmp_path) == [tmp_path / "host.trace.json"]


def test_xplane_comes_before_a_trace_of_the_same_session(tmp_path):
    small().write(tmp_path, name="host.trace.json.gz")
    (tmp_path / "host.xplane.pb").write_bytes(b"")
    assert profile_files(tmp_path) == [tmp_path / "host.xplane.pb"]
