"""The conversation on one connection: handshake, requests, answers. Each step has its time, and a request its limits.

gunicorn parses requests and checks what an application answers. An application gets requests that are there as a
whole, so nothing that it does can wait for a client.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import gevent
from gunicorn.http import errors, wsgi
from gunicorn.http.parser import RequestParser

from gpu2dra_webhook.connections import Connection, Connections, Cut, Phase

if TYPE_CHECKING:
    import socket
    import ssl

    from _typeshed.wsgi import StartResponse, WSGIApplication
    from gunicorn.config import Config
    from gunicorn.http.message import Request

_log = logging.getLogger(__name__)

_PARSE_ERRORS: Mapping[type[Exception], tuple[int, str]] = {
    errors.LimitRequestLine: (414, "the request line is too long"),
    errors.LimitRequestHeaders: (431, "the header is too large"),
    errors.UnsupportedTransferCoding: (501, "this transfer coding is not supported"),
    errors.ExpectationFailed: (417, "this expectation is not supported"),
}
_MALFORMED = (400, "this is no valid HTTP/1.1 request")
# Of a chunk: errors of the system in old releases of gunicorn.
_PARSE_EXCEPTIONS = (errors.ParseException, errors.InvalidChunkSize, errors.ChunkMissingTerminator)
_CUT = {Cut.DEADLINE: (408, "the request came too slowly")}
_BUSY = (503, "too many requests at once; try again")


@dataclass(frozen=True, slots=True)
class Port:
    """What one port serves, to whom, and within which limits. `keep_alive` is asked before each answer."""

    app: WSGIApplication
    address: Any
    connections: Connections
    config: Config
    context: Callable[[], ssl.SSLContext] | None
    keep_alive: Callable[[], bool]
    body_limit: int
    on_refusal: Callable[[int], None] = lambda status: None


class _Receiver:
    """What gunicorn's parser reads from: counts what comes in; with its first byte, a header's time begins."""

    def __init__(self, connections: Connections, connection: Connection) -> None:
        self._connections = connections
        self._connection = connection

    def recv(self, size: int) -> bytes:
        """Return what has come, at most `size` bytes; nothing at the end."""
        data = self._connection.socket.recv(size)
        if self._connection.phase is Phase.IDLE and data:
            self._connection.enter(Phase.HEADER)
        self._connections.receive(self._connection, len(data))
        return data


class _Collector(io.BytesIO):
    """Takes an answer in place of the socket, so that it goes out in one piece: one TLS record, one packet."""

    sendall = io.BytesIO.write


class _Response(wsgi.Response):
    """gunicorn's response, collected."""

    def __init__(self, request: Request, config: Config) -> None:
        self.collected = _Collector()
        super().__init__(request, cast("socket.socket", self.collected), config)

    def default_headers(self) -> list[str]:
        """Return the status and what HTTP needs; what we are and what time it is, an API server does not ask."""
        coding = ["Transfer-Encoding: chunked\r\n"] if self.chunked else []
        connection = "close" if self.should_close() else "keep-alive"
        return [f"HTTP/1.1 {self.status}\r\n", f"Connection: {connection}\r\n", *coding]


def serve(port: Port, client: Any, address: Any) -> None:
    """Hold the conversation with one client until it ends. Whatever a client does is no error of ours."""
    with port.connections.hold(client) as connection:
        if connection is None:
            return
        try:
            if port.context:
                connection.socket = port.context().wrap_socket(client, server_side=True, do_handshake_on_connect=False)
                connection.socket.do_handshake()
            _converse(port, connection, address)
        except (OSError, ValueError) as error:  # ValueError: TLS on a connection that ended meanwhile
            _log.debug("connection ended in its %s: %s", connection.phase, error)
        finally:
            connection.socket.close()


def _converse(port: Port, connection: Connection, address: Any) -> None:
    receiver = cast("socket.socket", _Receiver(port.connections, connection))
    parser = RequestParser(port.config, receiver, address)
    while True:
        connection.enter(Phase.HEADER if parser.unreader.buf.getbuffer().nbytes else Phase.IDLE)
        try:
            request = next(parser, None)
            if request is None or not _answer(port, connection, request, address):
                return
        except _PARSE_EXCEPTIONS as error:
            _refuse(port, connection, *_PARSE_ERRORS.get(type(error), _MALFORMED))
            return
        except OSError:  # also gunicorn's NoMoreData
            if connection.cut and connection.phase in (Phase.HEADER, Phase.BODY):
                _refuse(port, connection, *_CUT.get(connection.cut, _BUSY))
            raise
        # A client that sends many requests at once takes turns with the others.
        gevent.sleep(0)


def _answer(port: Port, connection: Connection, request: Request, address: Any) -> bool:
    """Answer one request; return whether another may follow on this connection."""
    connection.enter(Phase.BODY)
    _, environ = wsgi.create(request, connection.socket, address, port.address, port.config)
    response = _Response(request, port.config)
    whole = _read_body(port, environ)
    if not (whole and port.keep_alive()):
        response.force_close()
    connection.enter(Phase.ANSWER)
    parts = port.app(cast("dict[str, Any]", environ), cast("StartResponse", response.start_response))
    try:
        for part in parts:
            response.write(part)
        response.close()
    finally:
        if hasattr(parts, "close"):
            parts.close()
    connection.enter(Phase.WRITE)
    connection.socket.sendall(response.collected.getvalue())
    port.connections.answered(connection)
    if not whole:
        _linger(connection)
    return not response.should_close()


def _read_body(port: Port, environ: MutableMapping[str, Any]) -> bool:
    """Put the body into the environment, as far as the limit goes; return whether that was all of it.

    Of a body that is too large as much is put there as makes the application see that. Raises OSError for one that
    ends too early.
    """
    length = int(environ.get("CONTENT_LENGTH", 0))
    stream = environ["wsgi.input"]
    body = b"" if length > port.body_limit else stream.read(port.body_limit + 1)
    environ["wsgi.input"] = io.BytesIO(body)
    if len(body) < length <= port.body_limit:
        raise errors.NoMoreData
    return max(length, len(body)) <= port.body_limit


def _refuse(port: Port, connection: Connection, status: int, reason: str) -> None:
    """Answer what is no request, or none that may be answered."""
    port.on_refusal(status)
    text = f"{reason}\n"
    head = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}"
    connection.enter(Phase.WRITE)
    connection.socket.sendall(f"{head}\r\n\r\n{text}".encode("ascii"))
    _linger(connection)


def _linger(connection: Connection) -> None:
    """Read on for a moment: to close with bytes unread would reset the connection, and the answer be lost."""
    connection.enter(Phase.LINGER)
    while not connection.cut and connection.socket.recv(65536):
        pass
