"""Judge a user's own program by a contract."""

from collections.abc import Mapping, Sequence

from compare.contract.row import ContractRow
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.user_program.parameter_roles import read_roles
from compare.user_program.saved_program import SavedProgram
from compare.verdict.operand_traffic import CACHE, WEIGHT
from compare.verdict.verdict import Judgement, judge


def judge_saved(
    program: SavedProgram, contract: Sequence[ContractRow], *, roles: Mapping[str | int, str] | None = None
) -> Judgement:
    """The verdict on each collective of a program, which is read again because the reader uses the contract.

    roles: those of its parameters, by pattern of their name or by number.  Of the others, those aliased to an output
        (donated) count as caches, the rest as weights, unless they hold integers; but only what is made of named
        weights alone, such as a scaled weight, is known to be a weight.
    """
    module = read(program.text)
    named = read_roles(roles or {}, module)
    of_parameters = dict.fromkeys(module.aliased_parameters, CACHE) | named
    caches = frozenset(number for number, role in of_parameters.items() if role == CACHE)
    rows = collectives(
        module, program.axes, contract=contract, caches=caches, device_ids=program.device_ids, names=program.names,
        weights=frozenset(number for number, role in named.items() if role == WEIGHT),
    )  # fmt: skip
    return judge(rows, contract, axes=program.axes, roles=of_parameters)
