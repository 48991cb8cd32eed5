"""A user's own program held against a contract."""

from collections.abc import Sequence

from compare.contract.row import ContractRow
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.user_program.saved_program import SavedProgram
from compare.verdict.operand_traffic import CACHE
from compare.verdict.verdict import Judgement, judge


def judge_saved(program: SavedProgram, contract: Sequence[ContractRow]) -> Judgement:
    """The verdict on each collective of a program, which is read again: a contract makes the reader look closer.

    What its parameters are is not known.  Those whose memory an output takes over (donated ones) are caches; any other
    counts as a weight, unless it holds integers.
    """
    module = read(program.text)
    rows = collectives(module, program.axes, contract=contract, device_ids=program.device_ids, names=program.names)
    return judge(rows, contract, axes=program.axes, roles=dict.fromkeys(module.aliased_parameters, CACHE))
