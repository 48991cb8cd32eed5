"""The work of a program's instructions, counted from its text: multiply-adds, elements, bytes of memory."""
