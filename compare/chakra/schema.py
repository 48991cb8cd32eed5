"""The messages of a Chakra execution trace, from their field numbers; no generated code.

Source of the numbers: `schema/protobuf/et_def.proto` of mlcommons/chakra v1.0.0 (package `ChakraProtoMsg`, proto3).
"""

from types import MappingProxyType

from compare.hlo.proto.messages import classes
from compare.network.machines.kinds import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER

VERSION = "0.0.4"
"""Of the schema, as ASTRA-sim's own traces have it."""

INVALID, METADATA, MEM_LOAD, MEM_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(8)
"""NodeType."""
NODE_TYPES = (
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
)

BROADCAST = "collective-broadcast"
COMM_TYPES = MappingProxyType(
    {
        0: ALL_REDUCE,
        1: "reduce",
        2: ALL_GATHER,
        3: "gather",
        4: "scatter",
        5: BROADCAST,
        6: ALL_TO_ALL,
        7: REDUCE_SCATTER,
        8: "reduce-scatter-block",
        9: "barrier",
    }
)
"""CollectiveCommType, in XLA's words where it has one."""
COMM_TYPE_OF = MappingProxyType({kind: number for number, kind in COMM_TYPES.items()} | {"ragged-all-to-all": 6})
"""A ragged all-to-all is written as a full one, which is its upper bound."""

_SCALARS = (
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
)
"""The types of an attribute, in the order of their numbers: each a single value and a list, from 3 on."""
VALUES = tuple(f"{name}_{form}" for name in _SCALARS for form in ("val", "list"))
_TYPES = tuple(kind for name in _SCALARS for kind in (name, f"{name.capitalize()}List"))
INTEGERS = frozenset(f"{name}_val" for name in _SCALARS if "int" in name or "fixed" in name)

_MESSAGES = {
    "GlobalMetadata": "version=1:string attr=2*Attribute",
    "Node": (
        "id=1:uint64 name=2:string type=3:int32 ctrl_deps=4*uint64 data_deps=5*uint64 start_time_micros=6:uint64 "
        "duration_micros=7:uint64 inputs=8:IOInfo outputs=9:IOInfo attr=10*Attribute"
    ),
    "IOInfo": "values=1:string shapes=2:string types=3:string",
    "Attribute": "name=1:string doc_string=2:string "
    + " ".join(
        f"{value}={number}:{kind}" for number, (value, kind) in enumerate(zip(VALUES, _TYPES, strict=True), start=3)
    ),
    **{f"{name.capitalize()}List": f"values=1*{name}" for name in _SCALARS},
}
_CLASSES = classes("wirediff.chakra", _MESSAGES, oneofs={"Attribute": dict.fromkeys(VALUES, "value")})

GlobalMetadata, Node, Attribute = (_CLASSES[name] for name in ("GlobalMetadata", "Node", "Attribute"))
