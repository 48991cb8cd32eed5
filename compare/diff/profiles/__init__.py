"""Two profiles held against each other: what became slower first."""
