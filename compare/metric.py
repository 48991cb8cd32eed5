"""`python -m compare.metric`: the command of this name, `compare/cli/metric.py`."""

from compare.cli.metric import main
from meshes.process.command_line import run_command

if __name__ == "__main__":
    run_command(main)
