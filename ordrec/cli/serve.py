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
        typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 for any that is free."),
    ] = 8000,
    max_memory: MemoryOption = None,
) -> None:
    """Show a page on which you rate a few titles and see your list change.

    The page and the JSON API behind it (/docs) can be opened on this machine only. Nothing is
    written: what visitors rate is forgotten with the answer. Ctrl-C ends it.
    """
    from ordrec.errors import ArgumentError

    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ArgumentError(
            f"ordrec serve needs {error.name}: pip install 'ordrec[serve]'"
        ) from None
    from ordrec.serve.app import make_app
    from ordrec.serve.guard import PatientProtocol

    opened = _listening(port)
    print(f"ordrec: loading {model}", file=sys.stderr)
    app = make_app(loaded(model, max_memory), name=model.stem)
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
        f"ordrec: http://{HERE}:{opened.getsockname()[1]} shows {model}; Ctrl-C ends it",
        file=sys.stderr,
    )
    try:
        uvicorn.Server(config).run(sockets=[opened])
    except KeyboardInterrupt:  # the way to end it
        pass
    finally:
        opened.close()


def _listening(port: int) -> socket.socket:
    """A socket at a port of this machine, opened before the model is loaded."""
    import socket

    from ordrec.errors import ArgumentError

    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HERE, port))
        opened.listen()  # so that a request waits from the moment the address is shown
    except OSError as error:
        opened.close()
        raise ArgumentError(
            f"--port {port}: {error.strerror}: choose another one, or 0 for any that is free"
        ) from None
    return opened
