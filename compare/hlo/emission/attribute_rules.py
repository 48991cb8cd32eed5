"""Whether a collective has the attributes of its kind.

XLA's parser refuses others, and so must we: a collective whose groups are misspelled is one over all devices.
"""

from compare.hlo.text.instruction import Instruction

_OWN = {
    "all-reduce": ("replica_groups", "to_apply"),
    "all-gather": ("replica_groups", "dimensions"),
    "reduce-scatter": ("replica_groups", "dimensions", "to_apply"),
    "all-to-all": ("replica_groups", "dimensions"),
    "ragged-all-to-all": ("replica_groups", "dimensions"),
    "collective-broadcast": ("replica_groups",),
    "collective-permute": ("source_target_pairs",),
}
"""What says what a kind does; who takes part stands first."""
_GLOBAL = "use_global_device_ids"
_OF_SOME = frozenset(name for names in _OWN.values() for name in names)
_OF_ANY = frozenset({
    "async_execution_thread", "backend_config", "calls", "channel_id", "constrain_layout", "control-predecessors",
    "frontend_attributes", "metadata", "mode", "origin", "original_value", "output_to_operand_aliasing",
    "parameter_replication", "sharding", "slice_sizes", "split_dimension", "statistics", _GLOBAL,
})  # fmt: skip


def check_attributes(item: Instruction) -> None:
    """Raise `HloError` for an attribute of another kind, and for an unknown one where the groups are missing.

    An unknown one beside its groups is read over: a later XLA may have it.
    """
    kind = item.opcode.removesuffix("-start")
    own = _OWN.get(kind, ())
    if not own:
        return
    names = item.attributes.keys()
    if foreign := sorted((names & _OF_SOME).difference(own)):
        raise item.error(f"{kind} has no {foreign[0]}")
    if item.attributes.get(_GLOBAL, "true") not in ("true", "false"):
        raise item.error(f"{_GLOBAL} is true or false, not {item.attributes[_GLOBAL][:60]!r}")
    if item.attributes.get(_GLOBAL) == "true" and "channel_id" not in names:
        raise item.error(f"{_GLOBAL} without channel_id")
    unknown = sorted(names - _OF_SOME - _OF_ANY)
    if own[0] not in names and unknown:
        raise item.error(f"no {own[0]}, and {unknown[0][:60]!r}, which is not known")
