"""What a shell that completes a line is told, by argcomplete: commands, and the options of one."""

import argparse
import os
from collections.abc import Collection

import argcomplete

from meshes.process import command_line


def complete(commands: Collection[str]) -> list[str]:
    """The command of the line, whose parser then tells its options; names of commands are told here, and end it."""
    before = int(os.environ["_ARGCOMPLETE"])
    words = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])].split(" ")[before:]
    if words[1:] and words[0] in commands:
        os.environ["_ARGCOMPLETE"] = str(before + 1)
        command_line.COMPLETE.append(argcomplete.autocomplete)
        return words[:1]
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=[*commands])
    argcomplete.autocomplete(parser)
    return []
