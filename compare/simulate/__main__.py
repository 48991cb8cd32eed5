"""`python -m compare.simulate`: the command of this name, `compare/cli/simulate.py`."""

from compare.cli.simulate import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
