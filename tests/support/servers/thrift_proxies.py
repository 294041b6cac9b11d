"""Servers in front of a metastore: one that ends TLS, and one that asks for user and password."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Serve = Callable[[socket.socket, socket.socket], None]
_START, _OK, _BAD, _COMPLETE = 1, 2, 3, 5  # of Thrift's SASL messages


@contextmanager
def proxy(port: int, serve: Serve) -> Iterator[int]:
    """Serve each connection with one to a port of this machine; the port of the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=connected, args=(client,), daemon=True).start()

        def connected(client: socket.socket) -> None:
            with suppress(OSError), client, socket.create_connection(("127.0.0.1", port)) as server:
                serve(client, server)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def tls(context: ssl.SSLContext) -> Serve:
    def serve(client: socket.socket, server: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secured:
            _both_ways(secured, server)

    return serve


def password(user: str, secret: str) -> Serve:
    """SASL PLAIN as a metastore has it: messages of the sign-in, then frames."""

    def serve(client: socket.socket, server: socket.socket) -> None:
        mechanism = _message(client)
        _, given, word = _message(client).split(b"\0")
        if (mechanism, given, word) != (b"PLAIN", user.encode(), secret.encode()):
            said = b"Error validating the login"
            client.sendall(struct.pack(">BI", _BAD, len(said)) + said)
            return
        client.sendall(struct.pack(">BI", _COMPLETE, 0))
        threading.Thread(target=_framed, args=(server, client), daemon=True).start()
        with suppress(EOFError):
            while True:
                [size] = struct.unpack(">I", _read(client, 4))
                server.sendall(_read(client, size))

    return serve


def _framed(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := server.recv(65_536):
            client.sendall(struct.pack(">I", len(data)) + data)


def _message(client: socket.socket) -> bytes:
    _, size = struct.unpack(">BI", _read(client, 5))
    return _read(client, size)


def _read(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := source.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def _both_ways(one: socket.socket, other: socket.socket) -> None:
    back = threading.Thread(target=_pump, args=(other, one), daemon=True)
    back.start()
    _pump(one, other)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
