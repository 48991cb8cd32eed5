"""`python -m compare.calibrate`: the command of this name, `compare/cli/calibrate.py`."""

from compare.cli.calibrate import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
