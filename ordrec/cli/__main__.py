"""``python -m ordrec.cli`` is the command ``ordrec``."""

from ordrec.cli import main

main()
