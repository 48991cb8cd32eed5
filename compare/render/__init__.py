"""Reports drawn: terminal, page, figures, tables."""
