"""The modelled energy of a run: its tables, by other coefficients, as JSON."""
