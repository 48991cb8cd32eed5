"""`python -m tests.surprises` writes docs/surprises/README.md anew."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.surprises.made import made
from tests.surprises.page import page
from tests.surprises.programs import EXAMPLES

with TemporaryDirectory() as folder:
    (EXAMPLES / "README.md").write_text(page(made(Path(folder))), encoding="utf-8")
