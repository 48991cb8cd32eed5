"""Views of a report: the terminal, the page, the figures, the tables.  They read the report's dict and nothing else."""
