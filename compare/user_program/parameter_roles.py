"""The roles of a program's parameters: what its user says that they are, by name or number."""

import re
from collections.abc import Mapping

from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module
from compare.verdict.operand_traffic import CACHE, INPUT, WEIGHT
from meshes.process.one_line import one_line

ROLES = (WEIGHT, CACHE, INPUT)


def read_roles(roles: object, module: Module) -> dict[int, str]:
    """Number of a parameter -> its role.

    roles: a regular expression, searched in a parameter's name (JAX: `weights['layers']['up']`), or a parameter's
        number -> `weight`, `cache` or `input`; the first that fits holds.  Parameters that none fits are left out.
    Raises `HloError`, one line, for another type or role, and for a pattern or number that no parameter has.
    """
    if not isinstance(roles, Mapping):
        raise HloError(
            f"roles are {{pattern of a parameter's name, or its number: role}}, and no {type(roles).__name__}"
        )
    names = name_parameters(module)
    found: dict[int, str] = {}
    for key, role in roles.items():
        if role not in ROLES:
            raise HloError(f"roles have {key!r}: {role!r}; a parameter is {', '.join(ROLES[:-1])} or {ROLES[-1]}")
        fitting = _fitting(key, names)
        if not fitting:
            have = ", ".join(f"{number} {name!r}" for number, name in list(names.items())[:4])
            raise HloError(one_line(f"roles have {key!r}, which no parameter fits; the first are {have or 'none'}"))
        found |= {number: role for number in fitting if number not in found}
    return found


def name_parameters(module: Module) -> dict[int, str]:
    """Number -> name, of the parameters of the whole program, as its framework names them."""
    return {number: item.op_name or item.name for number, item in sorted(module.entry.parameters.items())}


def _fitting(key: object, names: Mapping[int, str]) -> list[int]:
    if type(key) is int:
        return [key] if key in names else []
    if not isinstance(key, str) or not key:
        raise HloError(f"roles have {key!r}; write a pattern of a parameter's name, or its number")
    try:
        pattern = re.compile(key)
    except (re.error, RecursionError, OverflowError) as error:
        raise HloError(f"roles have {key!r}, which is no regular expression: {error}") from None
    return [number for number, name in names.items() if pattern.search(name)]
