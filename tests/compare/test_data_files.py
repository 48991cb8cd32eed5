"""Data files that are read without a check of their own, held to their schema: a slip is found here, not by a user."""

import tomllib
from importlib import import_module
from typing import Any

import jsonschema
import pytest

from tests.places import ROOT

SENTENCE = {"type": "string", "pattern": r"^\S.*\S$"}
GLOSSARY = {
    "type": "object",
    "required": ["term"],
    "additionalProperties": False,
    "properties": {
        "term": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "means"],
                "additionalProperties": False,
                "properties": {"name": SENTENCE, "means": {"type": "string", "pattern": r"^\S.*\.$"}},
            },
        }
    },
}
METRIC = {
    "type": "object",
    "required": ["unit", "meaning", "ccl_bench", "measure"],
    "additionalProperties": False,
    "properties": {
        "unit": {"type": "string"},
        "meaning": SENTENCE,
        "ccl_bench": SENTENCE,
        "measure": {"type": "string", "pattern": r"^[a-z_]+\.[a-z_]+$"},
        "kind": SENTENCE,
    },
}
CATALOG = {"type": "object", "additionalProperties": METRIC}


def read(path: str) -> Any:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def test_every_term_of_the_glossary_is_once_there_with_a_sentence() -> None:
    glossary = read("compare/render/glossary.toml")
    jsonschema.validate(glossary, GLOSSARY)
    names = [term["name"] for term in glossary["term"]]
    assert len(set(names)) == len(names) > 10


def test_every_metric_of_the_catalogue_has_its_words_and_a_function_that_is_there() -> None:
    catalog = read("compare/ccl_bench_metrics/catalog.toml")
    jsonschema.validate(catalog, CATALOG)
    assert len(catalog) == 30
    for row in catalog.values():
        module, name = row["measure"].split(".")
        assert callable(getattr(import_module(f"compare.ccl_bench_metrics.{module}"), name))


@pytest.mark.parametrize("slip", [{"means": "half a sentence"}, {"mean": "x."}, {"name": ""}], ids=str)
def test_a_slip_is_found(slip: dict[str, str]) -> None:
    glossary = read("compare/render/glossary.toml")
    glossary["term"][3] |= slip
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(glossary, GLOSSARY)
