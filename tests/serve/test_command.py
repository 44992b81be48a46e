"""``ordrec serve`` as a process: it answers on this machine, and ends quietly."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.serving import titled_ratings
from typer.testing import CliRunner

from ordrec import save
from ordrec.cli import app
from ordrec.errors import ArgumentError
from ordrec.recommend import Popularity


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "films.ordrec"
    save(Popularity().fit(titled_ratings()), path)
    return path


def test_it_serves_until_it_is_interrupted(model: Path) -> None:
    pytest.importorskip("fastapi")
    command = [sys.executable, "-m", "ordrec.cli", "serve", str(model), "--port", "0"]
    before = sorted(model.parent.iterdir())
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=model.parent)
    assert process.stderr is not None
    assert process.stderr.readline() == f"ordrec: loading {model}\n"
    said = process.stderr.readline()
    try:
        with urlopen(said.split()[1] + "/api/model") as answer:
            assert json.load(answer)["name"] == "films"
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert (process.returncode, rest) == (0, "")
    assert said.startswith("ordrec: http://127.0.0.1:")
    assert sorted(model.parent.iterdir()) == before


def test_a_port_in_use_is_named(model: Path) -> None:
    pytest.importorskip("fastapi")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(app, ["serve", str(model), "--port", port])
    assert isinstance(done.exception, ArgumentError)
    assert f"--port {port}: Address already in use: choose another" in str(done.exception)


def test_without_the_extra_the_remedy_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = CliRunner().invoke(app, ["serve", str(model)])
    assert isinstance(done.exception, ArgumentError)
    assert str(done.exception) == "ordrec serve needs fastapi: pip install 'ordrec[serve]'"


def test_listening_elsewhere_is_said_and_names_can_be_confined(model: Path) -> None:
    pytest.importorskip("fastapi")
    command = [sys.executable, "-m", "ordrec.cli", "serve", str(model), "--port", "0"]
    command += ["--host", "127.0.0.2", "--allowed-host", "127.0.0.2", "--access-log"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=model.parent)
    assert process.stderr is not None
    said = [process.stderr.readline() for _ in range(3)]
    try:
        with urlopen(said[2].split()[1] + "/health") as answer:
            assert json.load(answer)["status"] == "ok"
        line = process.stderr.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert "without a password" in said[1]
    assert " GET /health 200 " in line


def test_allowed_hosts_need_an_address(model: Path) -> None:
    pytest.importorskip("fastapi")
    done = CliRunner().invoke(app, ["serve", str(model), "--allowed-host", "shop.example"])
    assert isinstance(done.exception, ArgumentError)
    assert "pass --host, too" in str(done.exception)
