"""`python -m compare.query`: the command of this name, `compare/cli/query.py`."""

from compare.cli.query import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
