"""Timelines drawn: strips, figures, tables, Perfetto traces."""
