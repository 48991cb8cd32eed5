"""Energy: coefficients of each generation, joules of a timeline; `speeds`: a run at other frequencies."""
