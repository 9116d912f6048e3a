"""`python -m duels` is the command `duels`."""

from .cli import main

if __name__ == "__main__":
    main()
