"""Judge a user's own program by a contract."""

from collections.abc import Sequence

from compare.contract.row import ContractRow
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.user_program.saved_program import SavedProgram
from compare.verdict.operand_traffic import CACHE
from compare.verdict.verdict import Judgement, judge


def judge_saved(program: SavedProgram, contract: Sequence[ContractRow]) -> Judgement:
    """The verdict on each collective of a program, which is read again because the reader uses the contract.

    The roles of its parameters are unknown: those aliased to an output (donated) count as caches, the others as
    weights, unless they hold integers.
    """
    module = read(program.text)
    rows = collectives(module, program.axes, contract=contract, device_ids=program.device_ids, names=program.names)
    return judge(rows, contract, axes=program.axes, roles=dict.fromkeys(module.aliased_parameters, CACHE))
