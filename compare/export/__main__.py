"""`python -m compare.export`: the command of this name, `compare/cli/export.py`."""

from compare.cli.export import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
