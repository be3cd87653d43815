#!/usr/bin/env bats
# Ways past a list of allowed hosts by names, by spellings of addresses, and by what names lead to.
load egress_attacks

setup_file() {
    far_possible python3 || return 0
    # shellcheck disable=SC2086 # one word an address
    far_begin $FAR_PUBLIC 5.6.7.9 $FAR_METADATA $FAR_PRIVATE
    far_resolver 127.0.0.1
    far_names --txt-record=c2VjcmV0.{evil,allowed}.test,told --txt-record=c2VjcmV0.wild.test,told --txt-record=allowed.test,told \
        --srv-host=allowed.test,evil.test,443 --mx-host=allowed.test,evil.test,1 \
        --address=/{allowed,evil}.test/1.2.3.4 --address=/{allowed,evil}.test/2001:db8::1 --address=/{,evil}wild.test/1.2.3.4 \
        --address=/private.test/10.0.0.1 --address=/loopback.test/127.0.0.1 --address=/metadata.google.internal/169.254.169.254 \
        --address=/metadata.test/169.254.169.254 --address=/mapped.test/::ffff:10.0.0.1 --address=/nat64.test/64:ff9b::a9fe:a9fe \
        --address=/compatible.test/::169.254.169.254 --address=/translated.test/::ffff:0:169.254.169.254 --address=/6to4.test/2002:a9fe:a9fe::1 \
        --address=/zero.test/0.0.0.0 --address=/uniquelocal.test/fd12::1 --address=/private.wild.test/10.0.0.1 \
        --host-record=behind.example,10.0.0.1 --cname=alias.test,behind.example \
        --host-record=site.example,1.2.3.4 --cname=unlisted.test,site.example \
        --dns-rr=allowed.test,65,000100000100030268320005000401020304 \
        --server=/rebind.test/both.test/127.0.0.2
    far_sites "$FAR_PUBLIC $FAR_METADATA $FAR_PRIVATE 127.0.0.1 ::1"
    far_server changing <<'PY'
# rebind.test is at a public address for the first who asks after the file `rebinds` was touched, and at a private one from then on;
# both.test is at an address where nobody listens and at a private one. Good for no time at all.
import os, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.2", 53))
open("rebinds", "w").close()
seen = None
print("ready", flush=True)
while True:
    question, client = s.recvfrom(4096)
    name = question[13:13 + question[12]]
    end = 12 + question[12:].index(b"\0") + 5
    addresses = []
    if question[end - 4:end - 2] == b"\0\1":
        touched = os.stat("rebinds").st_mtime_ns
        addresses = ["5.6.7.9", "10.0.0.1"] if name == b"both" else ["10.0.0.1"] if touched == seen else ["1.2.3.4"]
        seen = touched if name == b"rebind" else seen
    answer = question[:2] + struct.pack(">5H", 0x8580, 1, len(addresses), 0, 0) + question[12:end]
    for address in addresses:
        answer += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(address)
    s.sendto(answer, client)
PY
}
teardown_file() { far_end; }
setup() {
    setup_container
    far_required
    POLICY=''
    hosts_are allowed.test '"*.wild.test"' {private,loopback,metadata,mapped,nat64,compatible,translated,6to4,zero,uniquelocal,alias,rebind,both}.test
}
teardown() { teardown_container; }

@test "attacks: names" {
    check_rows <<'ROWS'
name_denied                 worked  nxdomain  any:dns.name.not_allowed:evil.test
name_denied_aaaa            worked  nxdomain  any:dns.name.not_allowed:evil.test
name_denied_case            worked  nxdomain  any:dns.name.not_allowed:evil.test
name_denied_tcp             worked  nxdomain  any:dns.name.not_allowed:evil.test
name_of_another_server      worked  nxdomain  any:dns.name.not_allowed:evil.test
name_of_another_server_tcp  worked  nxdomain  any:dns.name.not_allowed:evil.test
name_of_metadata            worked  nxdomain  any:dns.name.not_allowed:metadata.google.internal
alias_of_a_site             worked  nxdomain  any:dns.name.not_allowed:unlisted.test
text_of_denied              worked  nxdomain  any:dns.name.not_allowed:c2vjcmv0.evil.test
text_below_allowed          worked  nxdomain  any:dns.name.not_allowed:c2vjcmv0.allowed.test
address_below_allowed       worked  nxdomain  any:dns.name.not_allowed:c2vjcmv0.allowed.test
text_below_wildcard         worked  nodata    -  # the name is allowed, and is asked for when somebody connects
address_below_wildcard      worked  worked    -  # and has an address here
wildcard_itself             worked  nxdomain  any:dns.name.not_allowed:wild.test
wildcard_as_a_tail          worked  nxdomain  any:dns.name.not_allowed:evilwild.test
keys_of_allowed             worked  nodata    -
text_of_allowed             worked  nodata    -
services_of_allowed         worked  nodata    -
mail_of_allowed             worked  nodata    -
ROWS
    # Nothing of it went on to a name server, which does write down what it is asked.
    run cat "$FAR_WORK/queries.before"
    contains "$output" evil
    contains "$output" c2VjcmV0
    run cat "$FAR_WORK/queries"
    lacks "$output" evil
    lacks "$output" c2VjcmV0
}

# What servers do with such questions differs: the attempt itself is not shown without the policy.
@test "attacks: questions that are none" {
    check_rows <<'ROWS'
nul_in_a_name         -  nxdomain  -
dot_in_a_label        -  nxdomain  -
control_in_a_name     -  nxdomain  -
address_as_a_name     -  nxdomain  any:dns.name.not_allowed:169.254.169.254
number_as_a_name      -  nxdomain  any:dns.name.not_allowed:2852039166
pointer_to_itself     -  formerr   -
pointer_loop          -  formerr   -
pointer_forwards      -  formerr   -
pointer_beyond        -  formerr   -
label_of_64           -  formerr   -
name_of_256           -  formerr   -
two_questions         -  formerr   -
good_name_case        worked  worked  -  # the question comes back as it was asked (0x20)
ROWS
}

@test "attacks: addresses" {
    check_rows <<'ROWS'
literal                worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
literal_v6             worked  ECONNREFUSED  any:net.address.literal:2001:db8::1
literal_tls_resolver   worked  ECONNREFUSED  any:net.address.literal:1.2.3.4
private                worked  ECONNREFUSED  any:net.address.private:10.0.0.1
private_v6             worked  ECONNREFUSED  any:net.address.private:fd12::1
another_port                 worked  ECONNREFUSED  any:net.port.not_allowed:allowed.test
another_port_tls_resolver    worked  ECONNREFUSED  any:net.port.not_allowed:allowed.test
another_port_below_wildcard  worked  ECONNREFUSED  any:net.port.not_allowed:a.wild.test
synthetic_of_nobody     -  ECONNREFUSED  any:net.address.literal:198.18.200.1  # addresses of our own
synthetic_of_nobody_v6  -  ECONNREFUSED  any:net.address.literal:fd00:9800::c801
# Where the sandbox was called from, whose web server listens on loopback too: here they are the sandbox's own.
host_loopback         worked  ECONNREFUSED  -
host_loopback_short   worked  ECONNREFUSED  -
host_loopback_number  worked  ECONNREFUSED  -
host_loopback_name    worked  ECONNREFUSED  -
host_loopback_mapped  worked  ECONNREFUSED  -
host_loopback_v6      worked  ECONNREFUSED  -
host_zero             worked  ECONNREFUSED  -
host_zero_short       worked  ECONNREFUSED  -
host_zero_v6          worked  ECONNREFUSED  -
ROWS
}

@test "attacks: 169.254.169.254 by every spelling" {
    check_rows <<'ROWS'
metadata                     worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_number              worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_hexadecimal         worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_capitals            worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_octal               worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_mixed               worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_two_parts           worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_three_parts         worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_mapped              worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_mapped_hexadecimal  worked  ECONNREFUSED  any:net.address.metadata:169.254.169.254
metadata_nat64               worked  ECONNREFUSED  any:net.address.metadata:64:ff9b::a9fe:a9fe
metadata_compatible          worked  ECONNREFUSED  any:net.address.metadata:::169.254.169.254
metadata_translated          worked  ECONNREFUSED  any:net.address.metadata:::ffff:0:a9fe:a9fe
metadata_6to4                worked  ECONNREFUSED  any:net.address.metadata:2002:a9fe:a9fe::1
metadata_v6                  worked  ECONNREFUSED  any:net.address.metadata:fd00:ec2::254
ROWS
}

@test "attacks: what allowed names lead to" {
    check_rows <<'ROWS'
resolves_to_private          worked  ECONNRESET/closed  any:net.address.private:private.test
resolves_to_loopback         worked  ECONNRESET/closed  any:net.address.private:loopback.test
resolves_to_metadata         worked  ECONNRESET/closed  any:net.address.metadata:metadata.test
resolves_to_mapped           worked  ECONNRESET/closed  any:net.address.private:mapped.test
resolves_to_nat64            worked  ECONNRESET/closed  any:net.address.metadata:nat64.test
resolves_to_compatible       worked  ECONNRESET/closed  any:net.address.metadata:compatible.test
resolves_to_translated       worked  ECONNRESET/closed  any:net.address.metadata:translated.test
resolves_to_6to4             worked  ECONNRESET/closed  any:net.address.metadata:6to4.test
resolves_to_zero             worked  ECONNRESET/closed  any:net.address.private:zero.test
resolves_to_unique_local     worked  ECONNRESET/closed  any:net.address.private:uniquelocal.test
resolves_below_wildcard      worked  ECONNRESET/closed  any:net.address.private:private.wild.test
resolves_by_an_alias         worked  ECONNRESET/closed  any:net.address.private:alias.test
resolves_to_both             worked  ECONNRESET/closed  any:net.connection.failed:both.test  # the public one is tried, the private one is not
rebinding                    worked  ECONNRESET/closed  any:net.address.private:rebind.test
ROWS
}
