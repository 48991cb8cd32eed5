"""`python -m compare.diff`: what two programs, or two runs, communicate differently."""
