"""The files of one session: those that hold nothing, and devices that do nothing."""

import pytest

from compare.profile.join.profile import read_profile
from compare.profile.xplane.reader import profile_files
from compare.timeline.errors import TimingError
from tests.compare.timeline.build import trace_summary
from tests.compare.timeline.scenes import AXES, FUSION, REDUCE, comms
from tests.compare.timeline.spaces import Space, tpu

OPS = [(FUSION, 0, 100), (REDUCE, 100, 100)]
STEP = [("0", 0, 500)]


def host(*devices, idle=()):
    space = Space()
    for device in (*devices, *idle):
        tpu(space, device, OPS if device in devices else [], Steps=STEP)
    return space


def test_a_device_that_does_nothing_in_its_steps_is_one_all_the_same(tmp_path):
    summary = trace_summary(read_profile([host(0, idle=[1]).write(tmp_path)], axes=AXES))
    assert (summary["devices"], summary["per_step"]["communication_ns"]) == (2, 50)


def test_hosts_are_numbered_behind_devices_that_do_nothing(tmp_path):
    host(0, idle=[1]).write(tmp_path, "w-0")
    host(0, 1).write(tmp_path, "w-1")
    profile = read_profile(profile_files(tmp_path), axes=AXES)
    assert sorted(profile.stands_for) == sorted(set(profile.steps["device"])) == [0, 1, 2, 3]
    assert comms(profile, "device") == [(0,), (2,), (3,)]


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        (b"", "the file is empty"),
        (b"no profile\n", "it is no protobuf"),
        (host(0).serialized()[:30], "the file is cut at byte 30"),
    ],
)
def test_a_file_that_holds_no_profile_is_left_out_of_several(tmp_path, lost, words):
    path = host(0, 1).write(tmp_path, "w-1")
    (path.parent / "w-0.xplane.pb").write_bytes(lost)
    profile = read_profile(profile_files(tmp_path), axes=AXES)
    assert comms(profile, "device", "duration_ns") == [(0, 100), (1, 100)]
    assert any(note.startswith("w-0.xplane.pb is left out: ") and words in note for note in profile.notes)
    path.unlink()
    with pytest.raises(TimingError, match=words):
        read_profile(profile_files(tmp_path), axes=AXES)


def test_hosts_and_devices_with_clocks_of_their_own_are_each_exact(tmp_path):
    """In nanoseconds since 1970 a float holds no less than 256 of them."""
    for name, clocks in (("w-0", (5_000, 1_700_000_000_000_000_000)), ("w-1", (1_650_000_000_000_000_000,))):
        space = Space()
        space.plane("/host:CPU").line("python").event("collective_rpc", 0, 9)
        for device, clock in enumerate(clocks):
            plane = space.plane(f"/device:TPU:{device}")
            plane.line("XLA Ops", timestamp_ns=clock).event(FUSION, 0, 100.25).event(REDUCE, 100.25, 50)
            plane.line("Steps", timestamp_ns=clock).event("0", 0, 200.5)
        space.write(tmp_path, name)
    summary = trace_summary(read_profile(profile_files(tmp_path), axes=AXES))
    assert summary["devices"] == 3
    means = ("step_ns", "communication_ns", "exposed_ns", "compute_ns")
    assert [summary["per_step"][name] for name in means] == [200.5, 50, 50, 100.25]


def test_what_a_host_marks_by_another_clock_is_no_step(tmp_path):
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.line("XLA Ops", timestamp_ns=5_000).event(FUSION, 0, 100)
    plane.line("XLA Modules", timestamp_ns=5_000).event("jit_f(1)", 0, 120)
    space.plane("/host:CPU").line("python").event("train", 0, 500, stats={"step_num": 3})
    profile = read_profile([space.write(tmp_path)], axes=AXES)
    assert profile.steps[["start_ns", "duration_ns"]].to_numpy().tolist() == [[0, 120]]


def test_notes_of_several_files_say_which(tmp_path):
    """One file is cut inside its device, behind a host that can be read."""
    path = host(0).write(tmp_path, "w-0")
    other = Space()
    other.plane("/host:CPU").line("python").event("x", 0, 1)
    serialized = other.serialized()[: -len(other.hostname) - 2] + host(1).serialized()
    cut = path.with_name("w-1.xplane.pb")
    cut.write_bytes(serialized[:-200])
    profile = read_profile(profile_files(tmp_path), axes=AXES)
    assert any(note.startswith("w-1.xplane.pb: the file is cut at byte") for note in profile.notes)
    assert "w-1.xplane.pb shows no device at work" in profile.notes
    with pytest.raises(TimingError, match=r"no operation of any device is in it; .*; the file is cut at byte"):
        read_profile([cut], axes=AXES)
