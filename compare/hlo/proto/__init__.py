"""Serialized programs (`HloProto`): protobuf in, HLO text out."""
