"""`python -m tests.surprises` writes docs/surprises/README.md anew."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.surprises.compile_examples import compile_examples
from tests.surprises.page import page
from tests.surprises.programs import EXAMPLES

with TemporaryDirectory() as folder:
    (EXAMPLES / "README.md").write_text(page(compile_examples(Path(folder))), encoding="utf-8")
