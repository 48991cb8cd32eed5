"""What a report is: frozen dataclasses for each of its parts, and how they are read from and written to JSON."""
