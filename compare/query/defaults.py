"""What is taken of a question that says no other."""

from pathlib import Path

DEFAULT_FOLDER = Path("runs")
"""Where `compare.run` writes, and what is read where no folder is named."""

MOST_SECONDS = 600
"""Of an answer."""
