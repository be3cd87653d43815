/* egress/: the wall of a policy with allowed hosts: the sets, the redirections, what the mark lets out, the
 * broker's sockets, and what may come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <netinet/in.h>

#include <linux/netfilter_ipv4.h>
#include <poll.h>

#include "base/memory.h"
#include "egress/address.h"
#include "egress/broker_sockets.h"
#include "egress/egress.h"
#include "egress/host_rules.h"
#include "egress/names.h"
#include "egress/rules.h"
#include "wall_apart.h"

#define MARK_OF_NOBODY 0x1234

static struct wall_network network_of(struct policy_list *lines, const char *const *hosts) {
    for (size_t i = 0; hosts[i] != NULL; i++)
        policy_list_append(lines, hosts[i], "here");
    return (struct wall_network){.digest = "hosts", .allowed_hosts = lines};
}

/* -- ranges (pure) -- */

static void test_ranges(void **state) {
    (void)state;
    struct nft_ranges ranges = {.address_length = 4};
    static const uint8_t wide[4] = {10, 0, 0, 0}, inner[4] = {10, 1, 0, 0}, other[4] = {11, 0, 0, 9};
    nft_ranges_add(&ranges, inner, 16, 443);
    nft_ranges_add(&ranges, wide, 8, 443);
    nft_ranges_add(&ranges, inner, 16, 80);
    nft_ranges_add(&ranges, other, 32, 443);
    nft_ranges_add(&ranges, other, 32, 443);
    nft_ranges_complete(&ranges);
    /* The inner range is covered at 443, not at 80; what is written twice counts once. */
    assert_int_equal(ranges.count, 3);
    static const uint8_t expected[3][2][8] = {
        {{10, 1, 0, 0, 0, 80}, {10, 1, 255, 255, 0, 80}},
        {{10, 0, 0, 0, 1, 187}, {10, 255, 255, 255, 1, 187}},
        {{11, 0, 0, 9, 1, 187}, {11, 0, 0, 9, 1, 187}},
    };
    for (size_t i = 0; i < 3; i++) {
        assert_memory_equal(ranges.items[i].first, expected[i][0], 8);
        assert_memory_equal(ranges.items[i].last, expected[i][1], 8);
    }
    nft_ranges_free(&ranges);

    ranges.address_length = 4;
    static const uint8_t any[4] = {0};
    nft_ranges_add(&ranges, any, 0, 443);
    nft_ranges_add(&ranges, other, 32, 443);
    nft_ranges_complete(&ranges);
    assert_int_equal(ranges.count, 1);
    nft_ranges_free(&ranges);
}

static void test_openings(void **state) {
    (void)state;
    static const char *const hosts[] = {"a.test",      "b.test:22", "*.test:8443", "192.0.2.0/24:5432",
                                        "2001:db8::1", NULL};
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts);
    struct wall_openings openings;
    bool needed = false;
    assert_null(wall_openings_make(&network, &openings, &needed));
    assert_true(needed && openings.brokered && openings.dials_here);
    /* IPv4: a.test at 80, 443 and 8443, b.test at 22 and 8443; the names below at 8443; the range at 5432. */
    assert_int_equal(openings.sets[2 * WALL_SET_ADDRESSES].count, 5);
    assert_int_equal(openings.sets[2 * WALL_SET_BELOW].count, 1);
    assert_int_equal(openings.sets[2 * WALL_SET_RANGES].count, 1);
    /* IPv6: the same names, and the address at 80 and 443; no range. */
    assert_int_equal(openings.sets[2 * WALL_SET_ADDRESSES + 1].count, 7);
    assert_int_equal(openings.sets[2 * WALL_SET_BELOW + 1].count, 1);
    assert_int_equal(openings.sets[2 * WALL_SET_RANGES + 1].count, 0);
    static const uint8_t first[8] = {198, 18, 0, 2, 0, 22}, below[8] = {198, 19, 0, 0, 0x20, 0xfb};
    assert_memory_equal(openings.sets[2 * WALL_SET_ADDRESSES].items[0].first, first, sizeof first);
    assert_memory_equal(openings.sets[2 * WALL_SET_BELOW].items[0].first, below, sizeof below);
    wall_openings_free(&openings);
    policy_list_free(&lines);

    network = (struct wall_network){.digest = "none"};
    assert_null(wall_openings_make(&network, &openings, &needed));
    assert_false(needed);
    network.inbound_denied = true;
    assert_null(wall_openings_make(&network, &openings, &needed));
    assert_true(needed && !openings.brokered);
}

/* -- what a workload sees -- */

static const char *const hosts_here[] = {
    "a.test",         "b.test:22", "*.below.test:8443", "192.0.2.0/24:5432", "[2001:db8:5::1]:443",
    "0.0.0.0/0:7777", NULL};

static void accept_and_tell(int listener, char told[ADDRESS_TEXT_SIZE]) {
    struct pollfd event = {.fd = listener, .events = POLLIN};
    CHECK(poll(&event, 1, 5000) == 1);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    struct sockaddr_in6 original = {0};
    socklen_t length = sizeof original;
    int family;
    socklen_t family_length = sizeof family;
    CHECK(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_length) == 0);
    CHECK(getsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, SO_ORIGINAL_DST, &original,
                     &length) == 0);
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)&original;
    address_write(family, family == AF_INET ? (const uint8_t *)&ipv4->sin_addr : original.sin6_addr.s6_addr,
                  ntohs(ipv4->sin_port), told);
    close(fd);
}

/* connect() reaches the relay, which is told where it was meant to go. */
static void check_reaches(int listener, const char *address, uint16_t port, const char *expected) {
    char told[ADDRESS_TEXT_SIZE];
    int number = attempt(SOCK_STREAM, address, port);
    if (number != 0)
        fprintf(stderr, "%s port %u: %s\n", address, port, strerror(number));
    CHECK(number == 0);
    accept_and_tell(listener, told);
    if (strcmp(told, expected) != 0)
        fprintf(stderr, "%s: told %s\n", expected, told);
    CHECK(strcmp(told, expected) == 0);
}

/* A connection that the relay closes first: its end waits for last packets a minute long. */
static void leave_waiting(int listener) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443)};
    inet_pton(AF_INET, "198.18.0.1", &to.sin_addr);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(client, (struct sockaddr *)&to, sizeof to) == 0);
    struct pollfd event = {.fd = listener, .events = POLLIN};
    CHECK(poll(&event, 1, 5000) == 1);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    close(fd);
    char byte;
    CHECK(recv(client, &byte, 1, 0) == 0);
    close(client);
}

static void check_question(int names, const char *address) {
    char byte;
    CHECK(attempt(SOCK_DGRAM, address, 53) == 0);
    struct pollfd event = {.fd = names, .events = POLLIN};
    CHECK(poll(&event, 1, 5000) == 1);
    CHECK(recv(names, &byte, 1, 0) == 1 && byte == 'x');
}

static struct broker_sockets walled(const struct wall_network *network, bool interfaces) {
    bool joined = true;
    uint32_t mark = 0;
    struct broker_sockets sockets;
    CHECK_OK(wall_raise(network, &joined, &mark));
    CHECK(!joined && mark != 0);
    CHECK_OK(broker_sockets_open(mark, &sockets));
    CHECK(sockets.bound && sockets.mark == mark);
    if (interfaces)
        make_interfaces();
    CHECK_OK(wall_verify(network));
    CHECK_OK(wall_complete(network));
    CHECK_OK(wall_verify(network));
    return sockets;
}

static void check_redirections(const struct wall_network *network, bool interfaces) {
    struct broker_sockets sockets = walled(network, interfaces);
    /* Nobody listens yet. */
    CHECK(attempt(SOCK_STREAM, "198.18.0.1", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "127.0.0.1", BROKER_RELAY_PORT) == ECONNREFUSED);
    CHECK_OK(broker_sockets_listen(&sockets));

    check_reaches(sockets.relay_ipv4, "198.18.0.1", 443, "198.18.0.1:443");
    check_reaches(sockets.relay_ipv4, "198.18.0.1", 80, "198.18.0.1:80");
    check_reaches(sockets.relay_ipv4, "198.18.0.2", 22, "198.18.0.2:22");
    check_reaches(sockets.relay_ipv4, "198.19.77.8", 8443, "198.19.77.8:8443");
    check_reaches(sockets.relay_ipv4, "192.0.2.200", 5432, "192.0.2.200:5432");
    check_reaches(sockets.relay_ipv4, "1.2.3.4", 7777, "1.2.3.4:7777");
    check_reaches(sockets.relay_ipv6, "fd00:9800::1", 443, "[fd00:9800::1]:443");
    check_reaches(sockets.relay_ipv6, "fd00:9800:1::1234", 8443, "[fd00:9800:1::1234]:8443");
    check_reaches(sockets.relay_ipv6, "2001:db8:5::1", 443, "[2001:db8:5::1]:443");
    check_reaches(sockets.names_tcp_ipv4, "9.9.9.9", 53, "9.9.9.9:53");
    check_reaches(sockets.names_tcp_ipv6, "2001:db8::53", 53, "[2001:db8::53]:53");

    check_question(sockets.names_udp_ipv4, "9.9.9.9");
    check_question(sockets.names_udp_ipv4, "127.0.0.1");
    check_question(sockets.names_udp_ipv4, "127.0.0.11");
    check_question(sockets.names_udp_ipv6, "2001:db8::53");
    check_question(sockets.names_udp_ipv6, "::1");

    /* Another port of an allowed host, an address that is nobody's, what is next to a range; QUIC. */
    CHECK(attempt(SOCK_STREAM, "198.18.0.1", 8443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "198.18.0.2", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "198.18.0.3", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "198.19.77.8", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "192.0.3.1", 5432) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "2001:db8:5::2", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "fd00:9800::3", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_DGRAM, "198.18.0.1", 443) == EPERM);
    CHECK(attempt(SOCK_DGRAM, "192.0.2.1", 5432) == EPERM);
    CHECK(attempt(SOCK_DGRAM, "127.0.0.11", 5353) == EPERM);
    /* However wide a range is, loopback is the container's own. */
    CHECK(attempt(SOCK_STREAM, "127.0.0.1", 7777) == ECONNREFUSED);
    struct pollfd event = {.fd = sockets.relay_ipv4, .events = POLLIN};
    CHECK(poll(&event, 1, 0) == 0);

    leave_waiting(sockets.relay_ipv4);
    /* The broker is gone: connects are refused at once, nobody else gets its port, and it comes back. */
    broker_sockets_silence(&sockets);
    double before = milliseconds();
    CHECK(attempt(SOCK_STREAM, "198.18.0.1", 443) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "9.9.9.9", 53) == ECONNREFUSED);
    CHECK(milliseconds() - before < 900);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(BROKER_RELAY_PORT)};
    inet_pton(AF_INET, "127.0.0.1", &own.sin_addr);
    int squatter = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    CHECK(setsockopt(squatter, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    CHECK(bind(squatter, (struct sockaddr *)&own, sizeof own) < 0 && errno == EADDRINUSE);
    close(squatter);
    CHECK_OK(broker_sockets_listen(&sockets));
    check_reaches(sockets.relay_ipv4, "198.18.0.1", 443, "198.18.0.1:443");
    CHECK_OK(wall_verify(network));
    broker_sockets_close(&sockets);
}

static void body_alone(void) {
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    check_redirections(&network, false);
}

static void body_with_interfaces(void) {
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    check_redirections(&network, true);
}

static void body_uplink_elsewhere(void) {
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    network.uplink_elsewhere = true;
    check_redirections(&network, true);
}

static void test_redirections(void **state) {
    (void)state;
    run_apart(body_alone);
    run_apart(body_with_interfaces);
    run_apart(body_uplink_elsewhere);
}

/* -- the mark -- */

/* The errno of connect() with this mark. */
static int attempt_marked(uint32_t mark, const char *address, uint16_t port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), number = 0;
    socklen_t length = sizeof number;
    CHECK(inet_pton(AF_INET, address, &to.sin_addr) == 1);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) {
        number = errno;
    } else {
        struct pollfd event = {.fd = fd, .events = POLLOUT};
        CHECK(poll(&event, 1, 700) >= 0);
        if (event.revents == 0)
            number = EINPROGRESS; /* sent, and nobody answers */
        else
            CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length) == 0);
    }
    close(fd);
    return number;
}

static uint64_t denials(void) {
    uint64_t denied = 0, logged = 0;
    CHECK_OK(wall_counters_read(-1, false, &denied, &logged));
    return denied;
}

static void body_mark(void) {
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    struct broker_sockets sockets = walled(&network, true);
    /* pair0 has no neighbour: what may leave waits for an address resolution that is never answered, and what
     * may not for an answer to a held SYN. The counter tells which. */
    CHECK(attempt_marked(sockets.mark, "10.9.0.7", 443) == EINPROGRESS);
    CHECK(denials() == 0);
    (void)attempt_marked(sockets.mark ^ MARK_OF_NOBODY, "10.9.0.7", 443);
    CHECK(denials() == 1);
    (void)attempt_marked(0, "10.9.0.7", 443);
    CHECK(denials() == 2);
    /* Not redirected to itself, and not into the container. */
    CHECK_OK(broker_sockets_listen(&sockets));
    CHECK(attempt_marked(sockets.mark, "198.18.0.1", 22) != 0);
    CHECK(attempt_marked(sockets.mark, "127.0.0.1", BROKER_RELAY_PORT) == ECONNREFUSED);
    CHECK(attempt_marked(sockets.mark, "10.9.0.1", BROKER_RELAY_PORT) == ECONNREFUSED);
    CHECK(denials() == 2); /* the broker's own are nobody's attempts */
    struct pollfd event = {.fd = sockets.relay_ipv4, .events = POLLIN};
    CHECK(poll(&event, 1, 0) == 0);
    broker_sockets_close(&sockets);
}

static void body_mark_elsewhere(void) {
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    network.uplink_elsewhere = true;
    struct broker_sockets sockets = walled(&network, true);
    (void)attempt_marked(sockets.mark, "10.9.0.7", 443);
    CHECK(denials() == 1);
    broker_sockets_close(&sockets);
}

static void test_mark(void **state) {
    (void)state;
    run_apart(body_mark);
    run_apart(body_mark_elsewhere);
}

/* -- sockets of the next broker -- */

static void body_next_broker(void) {
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    struct broker_sockets first = walled(&network, false), next;
    bool joined = false;
    uint32_t mark = 0;
    CHECK_OK(wall_raise(&network, &joined, &mark));
    CHECK(joined && mark == first.mark);
    CHECK_OK(broker_sockets_open(mark, &next));
    CHECK(!next.bound);
    CHECK_OK(broker_sockets_listen(&first));
    leave_waiting(first.relay_ipv4);
    CHECK_OK(broker_sockets_bind(&next));
    CHECK(!next.bound);
    broker_sockets_close(&first);
    CHECK_OK(broker_sockets_bind(&next));
    CHECK(next.bound);
    CHECK_OK(broker_sockets_listen(&next));
    check_reaches(next.relay_ipv4, "198.18.0.1", 443, "198.18.0.1:443");

    int ends[2];
    CHECK_OK(fd_pair(&ends[0], &ends[1]));
    CHECK_OK(broker_sockets_send(ends[0], &next));
    broker_sockets_close(&next);
    CHECK_OK(broker_sockets_receive(ends[1], &next));
    CHECK(next.bound && next.mark == mark && next.relay_ipv6 >= 0 && next.names_udp_ipv4 >= 0);
    check_reaches(next.relay_ipv4, "198.18.0.1", 443, "198.18.0.1:443");
    check_question(next.names_udp_ipv4, "9.9.9.9");
    broker_sockets_close(&next);
}

static void test_next_broker(void **state) {
    (void)state;
    run_apart(body_next_broker);
}

/* lo without IPv6: there are no sockets for it, and nothing fails. */
static void body_without_ipv6(void) {
    write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    struct policy_list lines = {0};
    struct wall_network network = network_of(&lines, hosts_here);
    struct broker_sockets sockets = walled(&network, false);
    CHECK(sockets.relay_ipv6 < 0 && sockets.names_udp_ipv6 < 0 && sockets.names_tcp_ipv6 < 0);
    CHECK_OK(broker_sockets_listen(&sockets));
    check_reaches(sockets.relay_ipv4, "198.18.0.1", 443, "198.18.0.1:443");
    broker_sockets_close(&sockets);
}

static void test_without_ipv6(void **state) {
    (void)state;
    run_apart(body_without_ipv6);
}

/* -- changes behind our back -- */

static void change(void (*put)(struct netlink_batch *batch)) {
    struct netlink_batch batch = {0};
    int socket = -1;
    nft_batch_begin(&batch);
    put(&batch);
    nft_batch_end(&batch);
    CHECK_OK(netlink_open(NETLINK_NETFILTER, &socket));
    CHECK_OK(nft_commit(socket, &batch, "change"));
    close(socket);
    netlink_batch_free(&batch);
}

static void put_element(struct netlink_batch *batch) {
    struct nft_ranges ranges = {.address_length = 4, .keys = true};
    static const uint8_t address[4] = {203, 0, 113, 1};
    nft_ranges_add(&ranges, address, 32, 443);
    nft_ranges_put(batch, NFPROTO_INET, WALL_TABLE, "allowed_ipv4", &ranges, 0, 1);
    nft_ranges_free(&ranges);
}

static void put_range(struct netlink_batch *batch) {
    struct nft_ranges ranges = {.address_length = 4};
    static const uint8_t address[4] = {203, 0, 113, 0};
    nft_ranges_add(&ranges, address, 24, 443);
    nft_ranges_put(batch, NFPROTO_INET, WALL_TABLE, "ranges_ipv4", &ranges, 0, 1);
    nft_ranges_free(&ranges);
}

static void body_changed_set(void) {
    struct policy_list lines = {0}, fewer = {0};
    static const char *const hosts[] = {"a.test", "192.0.2.0/24:5432", NULL};
    static const char *const fewer_hosts[] = {"a.test", NULL}, *const other_hosts[] = {"a.test:443", NULL};
    struct wall_network network = network_of(&lines, hosts);
    struct wall_network narrower = network_of(&fewer, fewer_hosts);
    struct broker_sockets sockets = walled(&network, false);
    CHECK_ERROR(wall_verify(&narrower), ERROR_UNAVAILABLE, "there is a further rule in chain broker");
    struct policy_list other = {0};
    policy_list_append(&other, "192.0.2.0/24:5432", "here");
    struct wall_network other_ports = network_of(&other, other_hosts);
    CHECK_ERROR(wall_verify(&other_ports), ERROR_UNAVAILABLE, "further element in set allowed_ipv4");
    change(put_range);
    CHECK_ERROR(wall_verify(&network), ERROR_UNAVAILABLE, "further element in set ranges_ipv4");
    change(put_element);
    CHECK_ERROR(wall_verify(&network), ERROR_UNAVAILABLE, "further element in set allowed_ipv4");
    CHECK_ERROR(wall_complete(&network), ERROR_UNAVAILABLE, "further element in set allowed_ipv4");
    broker_sockets_close(&sockets);
}

static void test_changed_set(void **state) {
    (void)state;
    run_apart(body_changed_set);
}

/* More than one batch takes. */
static void body_many(void) {
    struct policy_list lines = {0};
    for (unsigned i = 0; i < 2500; i++) {
        memory_owned char *name = text_formatted("h%u.test:443", i);
        policy_list_append(&lines, name, "here");
    }
    struct wall_network network = {.digest = "many", .allowed_hosts = &lines};
    struct broker_sockets sockets = walled(&network, false);
    CHECK_OK(broker_sockets_listen(&sockets));
    check_reaches(sockets.relay_ipv4, "198.18.9.196", 443, "198.18.9.196:443");
    check_reaches(sockets.relay_ipv6, "fd00:9800::9c4", 443, "[fd00:9800::9c4]:443");
    CHECK(attempt(SOCK_STREAM, "198.18.9.197", 443) == ECONNREFUSED);
    broker_sockets_close(&sockets);
}

static void test_many(void **state) {
    (void)state;
    run_apart(body_many);
}

/* -- inbound -- */

static void body_inbound(void) {
    struct wall_network network = {.digest = "in", .inbound_denied = true};
    bool joined;
    uint32_t mark;
    CHECK_OK(wall_raise(&network, &joined, &mark));
    make_interfaces();
    CHECK_OK(wall_complete(&network));
    CHECK_OK(wall_verify(&network));
    struct wall_network open = {.digest = "in"};
    CHECK_ERROR(wall_verify(&open), ERROR_UNAVAILABLE, "further chain input");
    /* Within the namespace everything goes on as before. */
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(8080)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&own, sizeof own) == 0 && listen(fd, 8) == 0);
    CHECK(attempt(SOCK_STREAM, "127.0.0.1", 8080) == 0);
    CHECK(attempt(SOCK_STREAM, "10.9.0.1", 8080) == 0);
    CHECK(attempt(SOCK_STREAM, "::1", 8081) == ECONNREFUSED);
    close(fd);
}

static void test_inbound(void **state) {
    (void)state;
    run_apart(body_inbound);
}

/* -- another policy -- */

/* What the wall of one policy becomes under others: sets that come, go and change, identity, first hosts. */
static void body_change(void) {
    static const char *const none[] = {NULL},
                             *const two[] = {"a.test", "*.test:8443", "192.0.2.0/24:80", NULL},
                             *const three[] = {"b.test", NULL};
    struct policy_list lists[3] = {0};
    struct string_list names = {0};
    struct wall_network first = network_of(&lists[0], none), second = network_of(&lists[1], two),
                        third = network_of(&lists[2], three);
    bool joined = false;
    uint32_t mark = 0, again = 0;
    CHECK_OK(wall_raise(&first, &joined, &mark));
    CHECK_OK(wall_complete(&first));
    CHECK_OK(host_names_remember(&names, &lists[1]));
    CHECK_OK(host_names_remember(&names, &lists[2]));
    second.digest = "second";
    third.digest = "third";
    second.changed = third.changed = first.changed = second.brokered = third.brokered = first.brokered = true;
    second.names = third.names = first.names = &names;
    CHECK_OK(wall_change(&second)); /* from none: chain and sets are new */
    CHECK_OK(wall_verify(&second));
    CHECK_OK(wall_mark_read(&again));
    CHECK(again == mark);
    CHECK_ERROR(wall_verify(&third), ERROR_UNAVAILABLE, "not as it was written");
    CHECK_OK(wall_raise(&second, &joined, &again));
    CHECK(joined && again == mark);
    CHECK_OK(wall_change(&third));
    CHECK_OK(wall_verify(&third));
    CHECK_OK(wall_change(&third));
    CHECK_ERROR(wall_verify(&second), ERROR_UNAVAILABLE, "not as it was written");
    CHECK_ERROR(wall_raise(&second, &joined, &again), ERROR_REFUSED, "net.namespace.shared");
    CHECK_ERROR(wall_raise(&first, &joined, &again), ERROR_REFUSED, "net.namespace.shared");
    CHECK_OK(wall_raise(&third, &joined, &again));
    CHECK_OK(wall_complete(&third)); /* one that was changed before it was started */
    make_interfaces();
    CHECK_OK(wall_complete(&third));
    CHECK_OK(wall_change(&second));
    CHECK_OK(wall_verify(&second));
    CHECK_OK(wall_complete(&second));
    CHECK_OK(wall_change(&first));
    CHECK_OK(wall_verify(&first));
    string_list_free(&names);
    for (size_t i = 0; i < 3; i++)
        policy_list_free(&lists[i]);
}

static void test_change(void **state) {
    (void)state;
    run_apart(body_change);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),       cmocka_unit_test(test_openings),
        cmocka_unit_test(test_redirections), cmocka_unit_test(test_mark),
        cmocka_unit_test(test_next_broker),  cmocka_unit_test(test_without_ipv6),
        cmocka_unit_test(test_changed_set),  cmocka_unit_test(test_many),
        cmocka_unit_test(test_inbound),      cmocka_unit_test(test_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
