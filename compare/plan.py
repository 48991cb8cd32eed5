"""`python -m compare.plan`: the command of this name, `compare/cli/plan.py`."""

from compare.cli.plan import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
