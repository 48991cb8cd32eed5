"""The files of one session: those that hold nothing, and devices that do nothing."""

import pytest

from compare.timing.errors import TimingError
from compare.timing.metrics.summary import trace_summary
from compare.timing.sessions import profile_files
from compare.timing.trace import read
from tests.compare.timing.scenes import AXES, FUSION, REDUCE, talks
from tests.compare.timing.spaces import Space, tpu

OPS = [(FUSION, 0, 100), (REDUCE, 100, 100)]
STEP = [("0", 0, 500)]


def host(*devices, idle=()):
    space = Space()
    for device in (*devices, *idle):
        tpu(space, device, OPS if device in devices else [], Steps=STEP)
    return space


def test_a_device_that_does_nothing_in_its_steps_is_one_all_the_same(tmp_path):
    found = trace_summary(read([host(0, idle=[1]).write(tmp_path)], axes=AXES))
    assert (found["devices"], found["per_step"]["communication_ns"]) == (2, 50)


def test_hosts_are_numbered_behind_devices_that_do_nothing(tmp_path):
    host(0, idle=[1]).write(tmp_path, "w-0")
    host(0, 1).write(tmp_path, "w-1")
    found = read(profile_files(tmp_path), axes=AXES)
    assert sorted(found.stands_for) == sorted(set(found.steps["device"])) == [0, 1, 2, 3]
    assert talks(found, "device") == [(0,), (2,), (3,)]


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
    found = read(profile_files(tmp_path), axes=AXES)
    assert talks(found, "device", "duration_ns") == [(0, 100), (1, 100)]
    assert any(note.startswith("w-0.xplane.pb is left out: ") and words in note for note in found.notes)
    path.unlink()
    with pytest.raises(TimingError, match=words):
        read(profile_files(tmp_path), axes=AXES)


def test_notes_of_several_files_say_which(tmp_path):
    """One file is cut inside its device, behind a host that can be read."""
    path = host(0).write(tmp_path, "w-0")
    other = Space()
    other.plane("/host:CPU").line("python").event("x", 0, 1)
    whole = other.serialized()[: -len(other.hostname) - 2] + host(1).serialized()
    cut = path.with_name("w-1.xplane.pb")
    cut.write_bytes(whole[:-200])
    found = read(profile_files(tmp_path), axes=AXES)
    assert any(note.startswith("w-1.xplane.pb: the file is cut at byte") for note in found.notes)
    assert "w-1.xplane.pb shows no device at work" in found.notes
    with pytest.raises(TimingError, match=r"no operation of any device is in it; .*; the file is cut at byte"):
        read([cut], axes=AXES)
