"""The glossary of the page."""

import tomllib
from importlib.resources import files

GLOSSARY: tuple[tuple[str, str], ...] = tuple(
    (term["name"], term["means"])
    for term in tomllib.loads(files("compare.render").joinpath("glossary.toml").read_text(encoding="utf-8"))["term"]
)
"""Each term of a report, and what it means in a sentence."""
