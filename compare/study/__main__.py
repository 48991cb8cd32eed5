"""`python -m compare.study`: the command of this name, `compare/cli/study.py`."""

from compare.cli.study import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
