"""`python -m compare.trace`: the command of this name, `compare/cli/trace.py`."""

from compare.cli.trace import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
