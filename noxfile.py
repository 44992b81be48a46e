#!/usr/bin/env -S uv run

# /// script
# dependencies = ["nox>=2025.2.9"]
# ///

"""Tasks of the project, each in an environment of its own: ``nox --list`` names them."""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and types."""
    session.install("-e.[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy", "ordrec")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, on all cores: ``nox -s tests -- tests/ordinal`` runs some of them."""
    session.install("-e.[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session(python="3.11", venv_backend="uv", default=False)
def lowest(session: nox.Session) -> None:
    """Run some tests with the lowest versions of the dependencies that ordrec declares."""
    session.install("--resolution", "lowest-direct", ".[test]")
    chosen = session.posargs or [
        "tests/test_examples.py",
        "tests/data",
        "tests/lists",
        "tests/storage",
    ]
    session.run("pytest", "-n", "auto", *chosen)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into docs/_build/html; gallery and notebooks are run, warnings are errors."""
    session.install("-e.[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "docs", "docs/_build/html")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the wheel and the source distribution into dist."""
    session.install("build", "twine")
    session.run("python", "-m", "build")
    session.run("twine", "check", "--strict", "dist/*")


if __name__ == "__main__":
    nox.main()
