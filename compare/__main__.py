"""`python -m compare`: the same as `wirediff`."""

from compare.cli.front_door import script

if __name__ == "__main__":
    script()
