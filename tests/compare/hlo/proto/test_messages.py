"""Message classes made from a table, against bytes written by hand from protobuf's own encoding rules."""

import pytest
from google.protobuf.message import DecodeError

from compare.hlo.proto.messages import classes

MADE = classes(
    "toy",
    {
        "Box": "name=1:string sizes=2*int64 inner=3:Item items=4*Item",
        "Item": "id=1:int64 whole=2:int64 text=3:string",
    },
    oneofs={"Item": {"whole": "value", "text": "value"}},
)


def test_fields_are_read_by_number_and_type():
    # field 1 (bytes) "ab"; field 2 (varints, one packed list and one alone) 3 300 7; field 3 (a message) id=5
    box = MADE["Box"].FromString(b"\x0a\x02ab" + b"\x12\x03\x03\xac\x02" + b"\x10\x07" + b"\x1a\x02\x08\x05")
    assert (box.name, list(box.sizes), box.inner.id) == ("ab", [3, 300, 7], 5)
    assert box.HasField("inner")
    assert not box.items


def test_of_a_oneof_the_last_on_the_wire_is_set():
    item = MADE["Item"].FromString(b"\x10\x09" + b"\x1a\x01x")
    assert item.WhichOneof("value") == "text"
    assert MADE["Item"].FromString(b"").WhichOneof("value") is None


def test_fields_that_the_table_does_not_have_are_skipped():
    assert MADE["Item"].FromString(b"\x08\x01" + b"\xa2\x06\x03new").id == 1


@pytest.mark.parametrize("data", [b"\x0a\x7fcut", b"\x0a\x01\xff"], ids=["cut", "no UTF-8"])
def test_bytes_that_are_no_message_raise(data):
    with pytest.raises(DecodeError):
        MADE["Box"].FromString(data)
