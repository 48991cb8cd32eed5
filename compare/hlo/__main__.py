"""`python -m compare.hlo`: the command of this name, `compare/cli/hlo.py`."""

from compare.cli.hlo import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
