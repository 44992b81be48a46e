"""``ordrec serve``: a page and a JSON API for one model, on this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ordrec.cli.chosen_models import loaded
from ordrec.cli.options import MemoryOption, ModelArgument

if TYPE_CHECKING:
    import socket

HERE = "127.0.0.1"
MOST_AT_ONCE = 32  # connections
SECONDS_TO_END = 3


def serve(
    model: ModelArgument,
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", metavar="N", min=0, max=65535, help="Port; 0 for any free one."
        ),
    ] = 8000,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen at. With any other than this machine's own, everybody who "
            "reaches it can ask: there is no password and no encryption.",
        ),
    ] = HERE,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="With --host: answer only requests to this host name; may be repeated.",
        ),
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Print one line per request.")
    ] = False,
    max_memory: MemoryOption = None,
) -> None:
    """Show a page on which you rate titles, and a JSON API.

    The page and the JSON API behind it (/docs) can be opened on this machine only, unless --host
    says otherwise. Nothing is written: what visitors rate is forgotten with the answer. /health
    and /metrics (for Prometheus) say how the server is doing. Ctrl-C ends it.
    """
    from ordrec.errors import ArgumentError

    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ArgumentError(
            f"ordrec serve needs {error.name}: pip install 'ordrec[serve]'"
        ) from None
    from ordrec.serve.app import LOCAL, make_app
    from ordrec.serve.guard import PatientProtocol
    from ordrec.serve.traffic import print_line

    local = host in LOCAL
    if allowed_host and local:
        raise ArgumentError(
            "--allowed-host: on this machine only its own names are answered: pass --host, too"
        )
    opened = _listening(host, port)
    print(f"ordrec: loading {model}", file=sys.stderr)
    if not local:
        print(
            f"ordrec: listening at {host}: everybody who reaches it can ask this model, without a "
            "password and unencrypted; put a proxy with both in front of it",
            file=sys.stderr,
        )
    app = make_app(
        loaded(model, max_memory),
        name=model.stem,
        hosts=LOCAL if local else allowed_host or ("*",),
        access_log=print_line if access_log else None,
    )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=SECONDS_TO_END,
        http=PatientProtocol,
    )
    print(
        f"ordrec: http://{host}:{opened.getsockname()[1]} shows {model}; Ctrl-C ends it",
        file=sys.stderr,
    )
    try:
        uvicorn.Server(config).run(sockets=[opened])
    except KeyboardInterrupt:  # the way to end it
        pass
    finally:
        opened.close()


def _listening(host: str, port: int) -> socket.socket:
    """A socket at an address and a port, opened before the model is loaded."""
    import socket

    from ordrec.errors import ArgumentError

    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen()  # so that a request waits from the moment the address is shown
    except OSError as error:
        opened.close()
        option = f"--port {port}" if host == HERE else f"--host {host} --port {port}"
        raise ArgumentError(
            f"{option}: {error.strerror}: choose another one, or 0 for any that is free"
        ) from None
    return opened
