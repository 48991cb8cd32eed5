"""What every process of this project shares: command lines, JSON and TOML, atomic files, one-line errors."""
