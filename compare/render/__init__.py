"""Render reports: terminal, page, figures, tables."""
