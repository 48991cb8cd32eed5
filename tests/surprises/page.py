"""docs/surprises/README.md, made from the examples and from what their programs emit."""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from compare.diff.own.table import Table
from compare.render.units import bytes_text
from tests.surprises.programs import EXAMPLES

SYMPTOM = "Symptom: "  # Begins the paragraph of a docstring that lists, between `; `, what a user would search for.

HEAD = """# Surprising collectives

Programs that communicate more than their authors expected, most of them from public reports, each rebuilt in a few
lines: what is emitted, why, and what to write instead. Every file runs (`python docs/surprises/reshard.py`), compiled
by libtpu for a v5e:2x4 that need not be there; CI compiles them all, and this page is made from what came out
(`python -m tests.surprises`). Examples of torchax need `pip install -e '.[witness]'`.

How to read a program of your own like this: [own_program.md](../own_program.md).
"""


def page(tables: Mapping[str, Table]) -> str:
    """The whole page."""
    names = _names(tables)
    return "\n".join([HEAD, _index(names, tables), *(_example(name, tables) for name in names)])


def _index(names: Sequence[str], tables: Mapping[str, Table]) -> str:
    """From what a user sees to the examples that explain it."""
    found = defaultdict(list)
    for name in names:
        symptoms = [each.removeprefix(SYMPTOM) for each in _docstring(name)[1] if each.startswith(SYMPTOM)]
        assert len(symptoms) == 1, f"the docstring of {name} wants one paragraph '{SYMPTOM}…; …'"
        gone = "" if f"{name}.surprising" in tables else " (gone)"
        for symptom in " ".join(symptoms[0].split()).rstrip(".").split("; "):
            found[symptom].append(f"[{name}](#{name}){gone}")
    order = sorted(found, key=lambda symptom: symptom.replace("`", "").lower())
    rows = [f"| {symptom} | {', '.join(found[symptom])} |" for symptom in order]
    return "\n".join(["## By symptom", "", "| symptom | example |", "|---|---|", *rows]) + "\n"


def _names(tables: Mapping[str, Table]) -> list[str]:
    names = list(dict.fromkeys(name.partition(".")[0] for name in tables))
    return sorted(names, key=lambda name: (f"{name}.surprising" not in tables, name))


def _example(name: str, tables: Mapping[str, Table]) -> str:
    title, text = _docstring(name)
    text = [each for each in text if not each.startswith(SYMPTOM)]
    tables_of_example = {key.partition(".")[2]: table for key, table in tables.items() if key.startswith(f"{name}.")}
    order = sorted(tables_of_example, key=lambda word: (word.startswith("instead"), word))
    rows = [f"| `{word}` | {_emitted(tables_of_example[word])} | {_bytes(tables_of_example[word])} |" for word in order]
    table = "\n".join(["| | emits | bytes a step |", "|---|---|---|", *rows])
    axes = ", ".join(f"{axis}={size}" for axis, size in next(iter(tables_of_example.values())).axes.items())
    source = f"[{name}.py]({name}.py), on `{axes}`"
    return "\n\n".join([f'<a id="{name}"></a>', f"## {_linked(title)}", source, *map(_linked, text), table]) + "\n"


def _docstring(name: str) -> tuple[str, list[str]]:
    """A title, and paragraphs."""
    title, *text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text())).split("\n\n")
    return title.rstrip("."), text


def _linked(words: str) -> str:
    """Reports as links: `jax-ml/jax#21562`."""
    return re.sub(r"([\w.-]+/[\w.-]+)#(\d+)", r"[\g<0>](https://github.com/\1/issues/\2)", words)


def _emitted(table: Table) -> str:
    runs = table.counts("executions")
    words = [f"{'?' if runs[word] is None else runs[word]} × `{word}`" for word in table.counts()]
    return ", ".join(words) or "nothing"


def _bytes(table: Table) -> str:
    if table.step_wire_bytes is None:
        return "4 B an iteration" if len(table) == 1 and table[0].payload_bytes == 4 else "?"
    return bytes_text(table.step_wire_bytes)
