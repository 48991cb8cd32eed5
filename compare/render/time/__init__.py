"""Render timelines: strips, figures, tables, Perfetto traces."""
