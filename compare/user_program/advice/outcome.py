"""Try what is advised on the program that it is advised for: which remedy to write where, and what is sent then."""

from collections.abc import Iterator, Sequence

from compare.compile.requests import Remedy
from compare.hlo.collective import Collective
from compare.hlo.text.module import Module
from compare.user_program.advice.advise import Advice, match


def remedies(rows: Sequence[Collective], module: Module) -> Iterator[tuple[Advice, Remedy]]:
    """Each advice on the program that can be written into it, with the place of its collectives.

    Rows over other axes than the first's are left as they are.
    """
    for advice, fitting in match(rows, module).items():
        alike = [row for row in fitting if row.axes == fitting[0].axes]
        axes = fitting[0].axes.removesuffix(":sub")  # the tree of a cumulative sum pads within the axis
        if advice.remedy and "?" not in axes:
            yield (
                advice,
                {
                    "name": advice.remedy,
                    "op_names": sorted({row.op_name for row in alike}),
                    "axes": axes.split(","),
                    "parameters": sorted(
                        {number for row in alike for operand in row.operands for number in operand.parameters}
                    ),
                },
            )


def compare_traffic(before: Sequence[Collective], after: Sequence[Collective]) -> str:
    """What a program sends in a step with the remedy in it, and what it sent without."""
    now, earlier = _step_bytes(after), _step_bytes(before)
    words = f"compiled so, the program sends {_traffic(now, after)}"
    if now is not None and earlier is not None and now >= earlier:
        return f"{words}, which is no less than {_traffic(earlier, before)}: it is no remedy here"
    return f"{words}, and not {_traffic(earlier, before)}"


def _traffic(sent: int | None, rows: Sequence[Collective]) -> str:
    known = "? B" if sent is None else f"{sent:,} B"
    return f"{known} a step in {len(rows):,} collective{'s' * (len(rows) != 1)}"


def _step_bytes(rows: Sequence[Collective]) -> int | None:
    amounts = [row.step_wire_bytes for row in rows]
    return None if None in amounts else sum(amount or 0 for amount in amounts)
