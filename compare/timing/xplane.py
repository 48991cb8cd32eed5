"""The profile format of XLA, `xplane.pb`, as protobuf messages: no profiler package is needed to read it.

Field names and numbers are those of tsl/profiler/protobuf/xplane.proto; protobuf keeps what it does not know.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
}

_MESSAGES = {
    "XSpace": "planes=1*XPlane errors=2*string warnings=3*string hostnames=4*string",
    "XPlane": (
        "id=1:int64 name=2:string lines=3*XLine event_metadata=4*EventMetadataEntry "
        "stat_metadata=5*StatMetadataEntry stats=6*XStat"
    ),
    # A map on the wire is a list of these; as a list it keeps a key that stands twice.
    "EventMetadataEntry": "key=1:int64 value=2:XEventMetadata",
    "StatMetadataEntry": "key=1:int64 value=2:XStatMetadata",
    "XLine": (
        "id=1:int64 display_id=10:int64 name=2:string display_name=11:string timestamp_ns=3:int64 "
        "duration_ps=9:int64 events=4*XEvent"
    ),
    "XEvent": "metadata_id=1:int64 offset_ps=2:int64 num_occurrences=5:int64 duration_ps=3:int64 stats=4*XStat",
    "XStat": (
        "metadata_id=1:int64 double_value=2:double uint64_value=3:uint64 int64_value=4:int64 str_value=5:string "
        "bytes_value=6:bytes ref_value=7:uint64"
    ),
    "XEventMetadata": "id=1:int64 name=2:string display_name=4:string metadata=3:bytes stats=5*XStat child_id=6*int64",
    "XStatMetadata": "id=1:int64 name=2:string description=3:string",
}
_VALUES = {"XStat": "value"}
"""Messages of whose fields, but the first, at most one is set."""
