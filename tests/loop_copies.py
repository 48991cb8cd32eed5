"""Copies of memory in the loops of a compiled program, which no table of collectives shows."""

import re

_COPY = re.compile(r"^  (?:ROOT )?%\S+ = \w+\[([\d,]*)\]\S* copy\(", re.MULTILINE)


def list_loop_copies(text: str) -> list[str]:
    """The shape of each `copy` in the body of a `while`, like `4,8,1024,256`."""
    bodies = re.findall(r" while\(.*?body=(%[\w.-]+)", text)
    blocks = [re.search(rf"^{re.escape(body)} \(.*?^}}", text, re.MULTILINE | re.DOTALL) for body in bodies]
    return [shape for block in blocks if block for shape in _COPY.findall(block[0])]
