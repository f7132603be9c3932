"""Calls to the API server: each with a timeout, plain paths and bytes in, bytes or one of our own errors out.

The official client finds the cluster, holds connections and renews credentials. Its generated methods and models are
left alone: they have no default timeout, and their classes would take 22 MiB of each replica.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.connection import HTTPSConnection

from gpu2dra import Object
from gpu2dra_webhook.cluster.errors import ApiError, TimedOut, Unreachable, refusal
from gpu2dra_webhook.settings import SettingsError
from gpu2dra_webhook.tls import client_context

if TYPE_CHECKING:
    from pathlib import Path

    from kubernetes.client.rest import RESTResponse

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML

DEFAULT_TIMEOUT = 10.0
"""Seconds for a call that names none."""
CONNECT_TIMEOUT = 5.0
"""Seconds to reach the API server for a watch; other calls have one timeout for everything."""
_CONNECTIONS = 16
_CHUNK = 65536
_NOT_REPEATED = frozenset({"POST"})
"""A call that broke off may have done its work; repeated, these would be told AlreadyExists, or do it twice."""

Query = Mapping[str, str | int]


def connect(kubeconfig: Path | None = None, *, user_agent: str = "gpu2dra-webhook") -> Api:
    """Return the API that a kubeconfig names, or without one that of the cluster around this pod; nothing is sent yet.

    Raises SettingsError when there is no such configuration.
    """
    configuration = Configuration()
    # No repetitions behind our back: three of them, each with its own timeout, would break every deadline.
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    # Without it a peer that went away without a word (a node that lost its power) holds a watch until it times out.
    configuration.keep_alive = True
    try:
        if kubeconfig is None:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config(str(kubeconfig), client_configuration=configuration)  # type: ignore[no-untyped-call]
    except Exception as error:  # the loader raises whatever it trips over in a file that is no kubeconfig
        advice = f"look at {kubeconfig}" if kubeconfig else "outside of a cluster, name a kubeconfig"
        raise SettingsError(f"No API server to talk to: {_cause(error)} ({advice}).") from error
    client = ApiClient(configuration)
    client.rest_client.pool_manager.pool_classes_by_scheme = {
        "http": urllib3.HTTPConnectionPool, "https": _secured(configuration),
    }  # fmt: skip
    client.user_agent = user_agent
    return Api(client)


def _secured(configuration: Configuration) -> type[urllib3.HTTPSConnectionPool]:
    """Return a pool whose connections have a context of our own each, which urllib3 loads CA and certificate into.

    One for all would be changed by one thread in the middle of another's handshake, which ends the process. And files
    that are exchanged while we run are read again.
    """

    class Connection(HTTPSConnection):
        def connect(self) -> None:
            self.ssl_context = client_context()
            self.ssl_context.check_hostname = bool(configuration.verify_ssl)
            if not (configuration.ssl_ca_cert or configuration.ca_cert_data):
                self.ssl_context.load_default_certs()
            super().connect()

    class Pool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Connection

    return Pool


def path(root: str, *segments: str) -> str:
    """Return `root` with path segments added, quoted; ValueError for one that would lead elsewhere."""
    for segment in segments:
        if segment in {"", ".", ".."}:
            raise ValueError(f"{segment!r} is no name")
    return "/".join([root, *(quote(segment, safe="") for segment in segments)])


class Api:
    """One API server. Safe to use from many threads; each call holds a connection of its own while it runs."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.up = False
        """Whether the last request was answered, be it with a refusal."""

    def close(self) -> None:
        """Close idle connections."""
        self.client.close()  # type: ignore[no-untyped-call]

    def call(
        self,
        method: str,
        where: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> bytes:
        """Send one request and return the body of the answer; ApiError when refused or not answered in time.

        `timeout` is for all of it: connecting, sending, waiting. A connection that turns out to have been closed
        meanwhile is replaced once, but for a POST.
        """
        call = f"{method} {where}"
        for last in (method in _NOT_REPEATED, True):
            try:
                with _translated(call):
                    response = self._send(method, where, body, query, content_type, timeout)
                    data: bytes = response.response.data
            except TimedOut:
                raise
            except Unreachable:
                if last:
                    raise
                continue
            if response.status >= 400:  # noqa: PLR2004 - HTTP: from here on it is a refusal
                raise refusal(call, response.status, data, response.headers.get("Retry-After"))
            return data
        raise AssertionError("unreachable")

    def read(
        self,
        method: str,
        where: str,
        body: Any = None,
        *,
        query: Query | None = None,
        content_type: str = JSON,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Object:
        """Do as `call` does and return the object that came back as plain data."""
        data = self.call(method, where, body, query=query, content_type=content_type, timeout=timeout)
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ApiError(f"{method} {where}", f"the answer is no JSON object: {error}") from error

    def watch(self, where: str, query: Query, *, quiet: float) -> Watch:
        """Open a watch; ApiError when refused. Nothing heard for `quiet` seconds counts as a broken connection."""
        call = f"GET {where}"
        with _translated(call):
            response = self._send("GET", where, None, {**query, "watch": 1}, JSON, (CONNECT_TIMEOUT, quiet))
            if response.status >= 400:  # noqa: PLR2004 - as in `call`
                raise refusal(call, response.status, response.response.data, response.headers.get("Retry-After"))
        return Watch(call, response.response)

    def _send(
        self,
        method: str,
        where: str,
        body: Any,
        query: Query | None,
        content_type: str,
        timeout: float | tuple[float, float],
    ) -> RESTResponse:
        headers = {"Accept": JSON, **({} if body is None else {"Content-Type": content_type})}
        request = self.client.param_serialize(
            method, where, query_params=list((query or {}).items()), header_params=headers, body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        try:
            response = self.client.call_api(*request, _request_timeout=timeout)
        except Exception:
            self.up = False
            raise
        self.up = True
        return response


class Watch:
    """An open watch: iterate over its lines, then `close` it; `end` has the iteration end from any thread."""

    def __init__(self, call: str, response: urllib3.BaseHTTPResponse) -> None:
        self._call = call
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        """Yield one event a line until the server ends the watch; Unreachable when the connection breaks."""
        rest = b""
        with _translated(self._call):
            for chunk in self._response.stream(_CHUNK, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)

    def end(self) -> None:
        """Break the connection: a thread that waits for the next line gets Unreachable at once."""
        connection = getattr(self._response, "connection", None)
        sock = getattr(connection, "sock", None)
        with contextlib.suppress(OSError):
            if sock is not None:  # no `close`: that would wait for the lock that the reading thread holds
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection; for the thread that iterates."""
        self._response.close()


@contextlib.contextmanager
def _translated(call: str) -> Iterator[None]:
    """Turn what the client and its libraries raise for a call without an answer into Unreachable or TimedOut."""
    try:
        yield
    except urllib3.exceptions.NewConnectionError as error:  # a TimeoutError by inheritance only
        raise Unreachable(call, f"the API server cannot be reached ({_cause(error)})") from error
    except urllib3.exceptions.TimeoutError as error:
        raise TimedOut(call, "no answer in time") from error
    except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
        raise Unreachable(call, f"the API server cannot be reached ({_cause(error)})") from error
    except config.ConfigException as error:
        raise Unreachable(call, f"no credentials ({error})") from error


def _cause(error: BaseException) -> str:
    """Return the innermost reason of an error in a chain of wrapped ones, in one line."""
    while isinstance(inner := error.__cause__ or error.__context__, Exception):
        error = inner
    return " ".join(str(error).split()) or type(error).__name__
