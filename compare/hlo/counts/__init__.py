"""How often an instruction executes in one step: trip counts, branches, predicates."""
