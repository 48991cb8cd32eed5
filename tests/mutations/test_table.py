"""The table of mutations is of this code: each line stands once in its file, and each test is there."""

import ast

import pytest

from tests.mutations.table import ROOMS, Mutation, read_table
from tests.places import ROOT

TABLE = read_table()


def test_each_room_has_some_and_none_stands_twice() -> None:
    assert {mutation.room for mutation in TABLE} == set(ROOMS)
    assert len({(mutation.file, mutation.new) for mutation in TABLE}) == len(TABLE) >= 60


@pytest.mark.parametrize("mutation", TABLE, ids=lambda mutation: f"{mutation.file}: {mutation.new.strip()}"[:100])
def test_its_line_is_there_and_its_test(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.places(text) == 1, "another line was changed: run python -m tests.mutations anew"
    assert mutation.plant(text) != text
    ast.parse(mutation.plant(text))
    file, _, rest = mutation.caught_by.partition("::")
    name = rest.rpartition("::")[2].partition("[")[0]
    tests = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    assert name in {node.name for node in tests if isinstance(node, ast.FunctionDef)}
