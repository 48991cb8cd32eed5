"""The verdict: which bytes of each collective the contract requires, and why the others are there."""
