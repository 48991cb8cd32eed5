"""Where in a program a collective is, also for programs without any word of the closed list of scopes."""

import re

from compare.hlo.collective import Collective

# torch_xla counts each name up over the whole program: `layer.mlp.down.2/aten__einsum.1` in one run of a diff is
# another number in the other.
_NUMBER = re.compile(r"\.\d+(?=/|$)")
_WRAPPERS = re.compile(r"^(?:jit|pjit)\([^()]*\)/(?:jit\(main\)/)?")


def op_name_of(row: Collective) -> str:
    """The framework's path of the operation, its own or that of the fusion around it; empty where it has none."""
    return "" if "op_name" in row.inferred else row.op_name


def is_scope_inferred(row: Collective) -> bool:
    """Whether its scope is only that of its neighbours."""
    return row.scope == "?" or "scope" in row.inferred


def path_of(row: Collective) -> str:
    """The framework's path, its own or the nearest, without what every path begins with; empty where there is none."""
    return _NUMBER.sub("", _WRAPPERS.sub("", row.op_name))


def scope_or_path(row: Collective) -> str:
    """Its scope; where that is unknown the framework's path, without the numbers that torch_xla counts on."""
    if row.scope != "?":
        return row.scope
    return _NUMBER.sub("", _WRAPPERS.sub("", op_name_of(row)))
