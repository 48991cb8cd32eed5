"""`python -m compare.remedy`: the command of this name, `compare/cli/remedy.py`."""

from compare.cli.remedy import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
