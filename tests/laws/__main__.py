"""Prints docs/laws.md: `python -m tests.laws > docs/laws.md`."""

from tests.laws.page import page

print(page(), end="")
