"""The contract: what the plan's reference algorithms move, from the numbers of a `Case` alone.

Nothing here knows a sharding, a program or a framework: an error in what makes the shardings must not
be repeated in what they are held against.  Definitions: docs/definitions.md, section 2.
"""

from compare.contract.ends import collect_row, embed_row, head_row, sample_row, shift_row, spread_row
from compare.contract.layers import layer_rows
from compare.contract.row import ContractRow
from compare.contract.symbols import Letters
from meshes.case import Case


def inherent(case: Case) -> tuple[ContractRow, ...]:
    """The rows of one phase of a case, the layers first, then the ends of the step and the pipeline."""
    n = Letters.of(case)
    pipeline, tp = n.size("pp") > 1, n.size("tp") > 1
    vocabulary = tp and case.plan.rules["vocab"] is not None
    rows = list(layer_rows(n, case))
    rows += [embed_row(n)] if vocabulary else []
    rows += [shift_row(n)] if pipeline else []
    rows += [head_row(n)] if n.scattered else []
    rows += [sample_row(n)] if vocabulary else []
    rows += [collect_row(n)] if pipeline else []
    rows += [spread_row(n)] if n.prefill and n.size("cp") > 1 else []
    return tuple(rows)
