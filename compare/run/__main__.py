"""`python -m compare.run`: the command of this name, `compare/cli/run.py`."""

from compare.cli.run import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
