"""`xplane.pb` files: everything that is in them, or one line that says why not.  Oracle: JAX's own reader."""

import gzip
import math

import pytest

from compare.profile.xplane.reader import read_file
from compare.timeline.errors import TimingError
from tests.compare.timeline.spaces import Ref, Space, data, number

HLO = "%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %fusion.2), replica_groups={{0,1}}"


def make_space():
    """Two planes, with every kind of statistic, on events and on their metadata."""
    space = Space()
    device = space.plane("/device:TPU:0", device_type_string="TPU v5 lite", peak_teraflops_per_second=197.0)
    ops = device.line("XLA Ops", timestamp_ns=1_700_000_000_000_000_500)
    ops.event("fusion.2", 0, 100.25, about={"hlo_category": Ref("loop fusion"), "flops": 2**40})
    ops.event(HLO, 100.25, 50, display="all-reduce.1", stats={"device_offset_ps": 7}, about={"tf_op": "jit(f)/psum:"})
    ops.event("fusion.2", 200, 0.001, stats={"note": "é", "share": 0.5, "raw": b"x\x00", "negative": -3})
    device.line("Steps", timestamp_ns=1_700_000_000_000_000_000).event("0", 0, 1000)
    host = space.plane("/host:CPU")
    host.line("python").event("step", 5, 900, stats={"step_num": 0})
    return space


def test_names_times_and_statistics_are_read(tmp_path):
    space = read_file(make_space().write(tmp_path))
    device, _ = space.planes
    assert device.name == "/device:TPU:0"
    assert device.stats == {"device_type_string": "TPU v5 lite", "peak_teraflops_per_second": 197.0}
    ops = device.lines[0]
    assert (ops.name, len(ops)) == ("XLA Ops", 3)
    assert list(ops.names) == ["fusion.2", HLO, "fusion.2"]
    assert list(ops.display_names) == ["fusion.2", "all-reduce.1", "fusion.2"]
    assert space.zero_ns == 1_700_000_000_000_000_000
    assert ops.start_ns(space.zero_ns).tolist() == [500, 600.25, 700]
    assert ops.duration_ns.tolist() == [100.25, 50, 0.001]


def test_a_statistic_is_the_events_own_or_its_metadatas(tmp_path):
    ops = read_file(make_space().write(tmp_path)).planes[0].lines[0]
    assert list(ops.words("hlo_category")) == ["loop fusion", "", "loop fusion"]
    assert list(ops.words("tf_op")) == ["", "jit(f)/psum:", ""]
    assert list(ops.words("note")) == ["", "", "é"]
    assert list(ops.words("no such")) == ["", "", ""]
    assert ops.numbers("flops").tolist() == [2**40, -1, 2**40]
    assert ops.numbers("device_offset_ps", missing=0).tolist() == [0, 7, 0]
    assert ops.numbers("negative", missing=0).tolist() == [0, 0, -3]
    assert ops.numbers("no such").tolist() == [-1, -1, -1]


def test_jaxs_own_reader_sees_the_same(tmp_path):
    profiler = pytest.importorskip("jax.profiler")
    path = make_space().write(tmp_path)
    space, theirs = read_file(path), profiler.ProfileData.from_file(str(path))
    for plane, other in zip(space.planes, theirs.planes, strict=True):
        assert (plane.name, dict(plane.stats)) == (other.name, dict(other.stats))
        for line, their_line in zip(plane.lines, other.lines, strict=True):
            events = list(their_line.events)
            assert line.name == their_line.name
            assert list(line.names) == [event.name for event in events]
            # Its durations are whole nanoseconds.
            assert [int(duration) for duration in line.duration_ns] == [event.duration_ns for event in events]
            # Its floats hold no nanosecond of a time since 1970.
            starts = line.start_ns(0) - line.start_ns(0)[0]
            assert all(
                math.isclose(start, event.start_ns - events[0].start_ns, abs_tol=512)
                for start, event in zip(starts, events, strict=True)
            )
            assert line.numbers("step_num", missing=-9).tolist() == [
                dict(event.stats).get("step_num", -9) for event in events
            ]


def test_an_event_that_sums_up_many_stands_nowhere_in_time(tmp_path):
    space = Space()
    line = space.plane("/device:TPU:0").line("XLA Ops").event("a", 1, 2)
    line.events.append(number(1, 1) + number(5, 40) + number(3, 99_000))
    (read,) = read_file(space.write(tmp_path)).planes[0].lines
    assert read.duration_ns.tolist() == [2]


def test_what_a_newer_format_adds_is_skipped(tmp_path):
    space = make_space()
    ops = space.planes[0].lines[0]
    ops.events[0] += number(30, 5) + data(31, "new")
    path = space.write(tmp_path)
    path.write_bytes(path.read_bytes() + data(90, b"new") + number(91, 1))
    assert list(read_file(path).planes[0].lines[0].names) == ["fusion.2", HLO, "fusion.2"]


def test_a_line_without_a_name_has_the_one_that_it_is_shown_under(tmp_path):
    space = Space()
    space.plane("/device:TPU:0").line("").event("fusion.1", 0, 5)
    space.planes[0].lines[0].display_name = "XLA Ops"
    assert read_file(space.write(tmp_path)).planes[0].lines[0].name == "XLA Ops"


def test_names_that_are_no_text_are_read_all_the_same(tmp_path):
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.line("XLA Ops").event("caf", 1, 2)
    path = space.write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"caf", b"c\xe9f"))
    assert list(read_file(path).planes[0].lines[0].names) == ["c\N{REPLACEMENT CHARACTER}f"]


def test_a_gzipped_profile_is_one_too(tmp_path):
    path = tmp_path / "host.xplane.pb.gz"
    path.write_bytes(gzip.compress(make_space().serialized(), mtime=0))
    assert len(read_file(path).planes) == 2


def test_a_file_that_is_cut_tells_of_the_planes_that_are_whole(tmp_path):
    path = make_space().write(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    space = read_file(path)
    assert [plane.name for plane in space.planes] == ["/device:TPU:0"]
    (note,) = space.notes
    assert "cut at byte" in note
    assert "'/host:CPU'" in note


def test_a_device_that_is_cut_is_left_out_but_for_its_last_words(tmp_path):
    path = make_space().write(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b"raw")])  # in the names of statistics, behind all events and their names
    (device,) = read_file(path).planes
    assert list(device.lines[0].names) == ["fusion.2", HLO, "fusion.2"]
    path.write_bytes(content[: content.index(b"loop fusion") - 150])
    with pytest.raises(TimingError, match=r"cut at byte \d+, inside the plane '/device:TPU:0'"):
        read_file(path)


@pytest.mark.slow
def test_every_cut_is_one_line(tmp_path):
    path = make_space().write(tmp_path)
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        try:
            notes = read_file(path).notes
        except TimingError as error:
            notes = (str(error),)
        # A cut between two fields is none: what is before it is a whole file.
        assert all("\n" not in note for note in notes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"hello, world", "no profile of XLA"),
        (b'{"traceEvents": []}', "trace.json.gz"),
        (b"\x1f\x8b\x08\x00", "cut or damaged"),
        (data(4, "host"), "no profile of XLA"),
        (b"HloModule m\n\nENTRY e {}\n", "HLO text, and no profile; python -m compare.hlo FILE"),
    ],
)
def test_what_is_no_profile_is_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "x.pb"
    path.write_bytes(content)
    with pytest.raises(TimingError) as caught:
        read_file(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
