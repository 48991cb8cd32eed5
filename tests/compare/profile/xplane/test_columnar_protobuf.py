"""Messages as columns: every field of many messages, whatever their order and length."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.profile.xplane.columnar_protobuf import Messages, fields
from compare.timeline.errors import TimingError
from tests.compare.timeline.spaces import data, number, varint

NUMBERS = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 127, 128, 2**14, 2**49 - 1, 2**56 - 1, 2**56, 2**63 - 1, 2**63, 2**64 - 1]),
)
KEYS = st.integers(1, 20)
FIELD = st.one_of(
    st.tuples(KEYS, NUMBERS),
    st.tuples(KEYS, st.binary(max_size=200)),
    st.tuples(KEYS, st.floats(allow_nan=False)),
)


def write_message(key, value):
    if isinstance(value, float):
        return varint(key << 3 | 1) + struct.pack("<d", value)
    return number(key, value) if isinstance(value, int) else data(key, value)


def read_fields(messages):
    """The fields of each message, in their order, as numbers, floats' bits, or bytes."""
    columns = [[] for _ in range(len(messages))]
    for field in fields(messages):
        for owner, key, value, at in zip(field.owner, field.number, field.value, field.offset, strict=True):
            columns[owner].append((int(key), int(value), int(at)))
    return columns


@given(st.lists(st.lists(FIELD, max_size=5), max_size=20))
def test_what_was_written_is_read(rows):
    messages = Messages.of([b"".join(write_message(*field) for field in row) for row in rows])
    for row, columns in zip(rows, read_fields(messages), strict=True):
        assert len(row) == len(columns)
        for (key, value), (read_key, read, at) in zip(row, columns, strict=True):
            assert read_key == key
            if isinstance(value, bytes):
                assert messages.data[at : at + read].tobytes() == value
            elif isinstance(value, float):
                assert struct.unpack("<d", struct.pack("<Q", read))[0] == value
            else:
                assert read == value


def test_a_number_by_hand():
    # protobuf.dev/programming-guides/encoding: field 1 holding 150 is 08 96 01.
    ((field,),) = read_fields(Messages.of([bytes.fromhex("089601")]))
    assert field[:2] == (1, 150)


@pytest.mark.parametrize("broken", [b"\x08", b"\x12\x05abc", b"\x09\x00", b"\x0b", b"\xff" * 12])
def test_what_does_not_end_where_it_should_is_refused(broken):
    with pytest.raises(TimingError, match="damaged"):
        read_fields(Messages.of([b"\x08\x01", broken, b"\x08\x01"]))


def test_messages_inside_messages_share_the_bytes():
    outer = Messages.of([data(4, number(1, 7)), data(4, number(1, 300) + number(4, 5))])
    (single,) = fields(outer)
    inner = Messages(outer.data, single.offset, single.offset + single.value.astype("int64"))
    assert [[field[:2] for field in row] for row in read_fields(inner)] == [[(1, 7)], [(1, 300), (4, 5)]]
