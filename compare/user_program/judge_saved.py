"""Judge a user's own program by a contract, with the roles that its user gives its parameters."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compare.contract.row import ContractRow
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module, read
from compare.hlo.text.shapes import Array
from compare.user_program.saved_program import SavedProgram
from compare.verdict.operand_traffic import CACHE, INPUT, WEIGHT, can_hold_ids
from compare.verdict.verdict import Judgement, judge
from meshes.process.one_line import one_line


@dataclass(frozen=True, slots=True)
class SavedJudgement:
    """The verdicts on a program, and what they assume."""

    judgement: Judgement
    notes: tuple[str, ...] = ()


def judge_saved(
    program: SavedProgram, contract: Sequence[ContractRow], *, roles: Mapping[str | int, str] | None = None
) -> SavedJudgement:
    """The verdict on each collective of a program, which is read again because the reader uses the contract.

    roles: those of its parameters, by pattern of their name or by number.  Of the others, those aliased to an output
        (donated) count as caches, the rest as weights, unless they can hold ids; but only what is made of named
        weights alone, such as a scaled weight, is known to be a weight.  Without roles, a note says which verdicts
        would be others if all of the rest were weights.
    """
    module = read(program.text)
    named = read_roles(roles or {}, module)
    of_parameters = dict.fromkeys(module.aliased_parameters, CACHE) | named
    caches = frozenset(number for number, role in of_parameters.items() if role == CACHE)
    rest = frozenset(_list_without_ids(module)) - caches
    weights = frozenset(number for number, role in named.items() if role == WEIGHT) if named else rest
    rows = collectives(
        module,
        program.axes,
        contract=contract,
        caches=caches,
        device_ids=program.device_ids,
        names=program.names,
        weights=weights,
    )
    if named:
        return SavedJudgement(judge(rows, contract, axes=program.axes, roles=of_parameters))
    judgement = judge([_without_guess(row) for row in rows], contract, axes=program.axes, roles=of_parameters)
    undecided = [
        guessed
        for guessed, verdict in zip(rows, judgement.verdicts, strict=True)
        if _gathers_of_weights(guessed)
        and verdict.serves
        and not any(contract[number].of_weights for number in verdict.serves)
    ]
    return SavedJudgement(judgement, (_note(undecided, rest, module),) if undecided else ())


def _list_without_ids(module: Module) -> Iterator[int]:
    for number, item in module.entry.parameters.items():
        if not (isinstance(item.shape, Array) and can_hold_ids(item.shape.dtype)):
            yield number


def _gathers_of_weights(row: Collective) -> bool:
    """Sums are left out: those of partial products that are made of parameters alone are no weights."""
    return row.kind == "all-gather" and any(operand.of_weights for operand in row.operands)


def _without_guess(row: Collective) -> Collective:
    """The row, where no parameter is known to be a weight."""
    operands = tuple(replace(operand, of_weights=False) for operand in row.operands)
    return replace(row, operands=operands) if operands != row.operands else row


def _note(rows: Sequence[Collective], rest: frozenset[int], module: Module) -> str:
    names = name_parameters(module)
    which = ", ".join(names[number] for number in sorted(rest)[:4]) + ", …" * (len(rest) > 4)
    one = len(rows) == 1
    subject = f"{rows[0].name} serves" if one else f"{len(rows)} all-gathers serve"
    return one_line(
        f"{subject} a row of the contract, but {'depends' if one else 'depend'} on no parameter besides {which}; if "
        "all of these are weights, no activation is gathered there: say which with judge(…, roles={pattern of a name: "
        "'weight' or 'input'})",
        most=400,
    )


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
