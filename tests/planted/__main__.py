"""Prints docs/planted.md: `python -m tests.planted > docs/planted.md`."""

from tests.planted.page import page

print(page(), end="")
