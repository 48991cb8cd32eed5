"""`python -m compare.report`: the command of this name, `compare/cli/report.py`."""

from compare.cli.report import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
