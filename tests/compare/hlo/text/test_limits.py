"""What is too large is refused in one line, before it is in memory: files, what is packed in them, and their parts."""

import gzip
import io
import lzma
import tarfile

import pytest

from compare.hlo.proto import program
from compare.hlo.text import files
from compare.hlo.text.errors import HloError
from compare.passes import archive as passes
from compare.profile.xplane import columnar_protobuf, reader
from compare.timeline.errors import TimingError
from meshes.process.one_line import MOST
from tests.compare.timeline.spaces import data, number


def test_a_gzip_file_that_unpacks_to_much_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.hlo.gz"
    path.write_bytes(gzip.compress(bytes(1 << 20)) * 1000)  # a megabyte that is a gigabyte
    with pytest.raises(HloError, match=r"bomb\.hlo\.gz: the gzip file, unpacked, is larger than 256 MiB"):
        files.read_file(path)
    with pytest.raises(TimingError, match=r"bomb\.hlo\.gz: the gzip file, unpacked, is larger than 80 MiB"):
        reader.read_file(path)


def archive(name, content):
    packed = io.BytesIO()
    with lzma.open(packed, "wb", preset=0) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def test_recorded_passes_that_unpack_to_much_are_not_unpacked(monkeypatch):
    monkeypatch.setattr(passes, "MOST_BYTES", 1 << 20)
    with pytest.raises(HloError, match="the recorded passes are more than 1 MiB"):
        passes.unpack(archive("before_optimizations.txt", bytes(2 << 20)))
    with pytest.raises(HloError, match="the recorded passes are more than 1 MiB"):
        passes.unpack(archive("x" * (2 << 20), b""))  # a name of its own two megabytes


def test_recorded_passes_are_texts_alone():
    packed = io.BytesIO()
    with lzma.open(packed, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        entry = tarfile.TarInfo("before_optimizations.txt")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(HloError, match="which is no text of a pass"):
        passes.unpack(packed.getvalue())


def test_a_serialized_program_that_is_too_large_is_refused():
    with pytest.raises(HloError, match="the serialized HLO module of 67,108,865 bytes is too large"):
        program.write_hlo_text(bytes((1 << 26) + 1))


MANY = 4_200_000


@pytest.mark.parametrize(
    "space",
    [
        data(2, b"") * MANY,
        data(1, data(3, b"") * MANY),
        data(1, data(3, data(4, b"") * MANY)),
        data(1, data(4, b"") * MANY),
        data(1, data(4, data(2, data(5, b"") * MANY))),
        data(1, data(5, b"") * MANY),
        data(1, data(6, b"") * MANY),
    ],
    ids=["errors", "lines", "events", "kinds of events", "their statistics", "names", "statistics"],
)
def test_parts_of_a_profile_are_counted_before_they_are_in_memory(space):
    with pytest.raises(TimingError, match="more than 4,194,304 events"):
        reader._read(space, "profile")


@pytest.mark.parametrize("end", [b"", data(1, b"name")[:-1]], ids=["whole", "cut"])
def test_planes_of_a_profile_are_counted_before_any_is_read(end):
    with pytest.raises(TimingError, match="the profile has 16,385 planes, of which at most 16,384 are read"):
        reader._read(data(1, b"") * 16_385 + end, "profile")


def test_an_event_of_very_many_fields_is_refused():
    events = columnar_protobuf.Messages.of([number(1, 7) * (columnar_protobuf.MOST_FIELDS + 2)])
    with pytest.raises(TimingError, match="an event has more than 4096 fields"):
        list(columnar_protobuf.fields(events))


@pytest.mark.parametrize("error", [HloError, TimingError])
def test_an_error_is_one_clean_line(error):
    said = str(error("line 3:\n \x1b[31mred\u2028\x07 " + "x" * 10_000))
    assert said.startswith("line 3: �[31mred ")
    assert said.isprintable()
    assert len(said) == MOST
