"""``python -m ordrec.cli`` is the command ``ordrec``."""

from ordrec.cli import main

if __name__ == "__main__":
    main()
