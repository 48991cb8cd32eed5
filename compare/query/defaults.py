"""What is taken of a question that says no other."""

DEFAULT_FOLDER = "runs"
"""Where `compare.run` writes, and what is read where no folder is named."""

MOST_SECONDS = 600
"""Of an answer."""
