"""`python -m compare.history`: the command of this name, `compare/cli/history.py`."""

from compare.cli.history import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
