"""`python -m compare.sweep`: the command of this name, `compare/cli/sweep.py`."""

from compare.cli.sweep import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
