"""`python -m compare.teach`: the command of this name, `compare/cli/teach.py`."""

from compare.cli.teach import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
