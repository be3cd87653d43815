#!/usr/bin/env python3
"""listen.py DIRECTORY PORT: counts what arrives. Every byte that comes over TCP is appended to DIRECTORY/tcp (and one
"connection" line for each connection, so that an empty one counts too), every datagram to DIRECTORY/udp, on PORT of
every IPv4 and IPv6 address. DIRECTORY/ready appears when it listens."""
import pathlib
import selectors
import socket
import sys

directory, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
selector = selectors.DefaultSelector()


def note(name, data):
    with open(directory / name, "ab") as file:
        file.write(data)


def on_datagram(sock):
    data, _ = sock.recvfrom(65536)
    note("udp", data)


def on_connection(sock):
    connection, _ = sock.accept()
    note("tcp", b"connection\n")
    selector.register(connection, selectors.EVENT_READ, on_bytes)


def on_bytes(sock):
    try:
        data = sock.recv(65536)
    except OSError:
        data = b""
    if not data:
        selector.unregister(sock)
        sock.close()
    note("tcp", data)


for kind, handler in ((socket.SOCK_STREAM, on_connection), (socket.SOCK_DGRAM, on_datagram)):
    listening = socket.socket(socket.AF_INET6, kind)
    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("::", port))
    if kind == socket.SOCK_STREAM:
        listening.listen(16)
    selector.register(listening, selectors.EVENT_READ, handler)
(directory / "ready").touch()
while True:
    for key, _ in selector.select():
        key.data(key.fileobj)
