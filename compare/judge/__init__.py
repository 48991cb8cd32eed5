"""The contract, the verdicts, the difference."""
