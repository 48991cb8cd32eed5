"""`python -m compare.diff`: the command of this name, `compare/cli/diff.py`."""

from compare.cli.diff import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
