"""Where values come from and go to: calls, instructions that hand a value on, layout changes."""
