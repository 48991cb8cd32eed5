"""`python -m compare.energy`: the command of this name, `compare/cli/energy.py`."""

from compare.cli.energy import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
