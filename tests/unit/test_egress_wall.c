/* egress/: the wall in network namespaces of its own, rootless: each test is a child in a new user and
 * network namespace. Raised, completed, joined, refused, changed behind our back, and what connect() and
 * sendto() see. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "base/fd.h"
#include "egress/egress.h"
#include "egress/rules.h"
#include "wall_apart.h"

static const struct wall_network plain = {.digest = "one"};

static struct error *raise_wall(const char *digest, bool *joined) {
    struct wall_network network = {.digest = digest};
    uint32_t mark = 0;
    return wall_raise(&network, joined, &mark);
}

static void raise_and_complete(void) {
    bool joined = true;
    CHECK_OK(raise_wall("0123456789abcdef", &joined));
    CHECK(!joined);
    CHECK_OK(wall_complete(&plain));
}

static void body_life(void) {
    bool joined = true;
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "is not there");
    CHECK_ERROR(wall_complete(&plain), ERROR_UNAVAILABLE, "is not there");
    CHECK_OK(wall_remove());
    CHECK_OK(raise_wall("one", &joined));
    CHECK(!joined);
    CHECK_OK(wall_verify(&plain));
    CHECK_OK(wall_complete(&plain));
    CHECK_OK(wall_verify(&plain));
    CHECK_OK(wall_complete(&plain));
    CHECK_OK(raise_wall("one", &joined));
    CHECK(joined);
    CHECK_OK(wall_verify(&plain));
    CHECK_ERROR(raise_wall("two", &joined), ERROR_REFUSED, "net.namespace.shared: ");
    CHECK(!joined);
    CHECK_OK(wall_verify(&plain));
    CHECK_OK(wall_remove());
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "is not there");
    CHECK_OK(raise_wall("two", &joined));
    CHECK(!joined);
    CHECK_ERROR(raise_wall("", &joined), ERROR_INVALID, "digest");
}

static void test_life(void **state) {
    (void)state;
    run_apart(body_life);
}

/* -- changes behind our back: each is made in a wall that is whole, and must be seen -- */

static void commit(struct netlink_batch *batch) {
    int socket = -1;
    CHECK_OK(netlink_open(NETLINK_NETFILTER, &socket));
    nft_batch_end(batch);
    CHECK_OK(nft_commit(socket, batch, "change"));
    close(socket);
    netlink_batch_free(batch);
}

static void body_changed(void) {
    raise_and_complete();
    struct netlink_batch batch = {0};

    struct nft_rule rule = {.chain = "forward", .name = "hole"};
    nft_verdict(&rule.expressions, NF_ACCEPT, NULL);
    nft_batch_begin(&batch);
    nft_rule_add(&batch, NFPROTO_INET, WALL_TABLE, &rule);
    commit(&batch);
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "not as it was written");
    CHECK_OK(wall_complete(&plain)); /* puts it right */
    CHECK_OK(wall_verify(&plain));

    nft_batch_begin(&batch);
    nft_chain_flush(&batch, NFPROTO_INET, WALL_TABLE, "refuse");
    commit(&batch);
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "missing is rule counted");
    CHECK_OK(wall_complete(&plain));
    CHECK_OK(wall_verify(&plain));

    /* The same names in the same places, but one verdict: only the content tells. */
    struct wall_plan plan = {0};
    wall_plan_make(&plan, WALL_ALONE, 1, NULL, NULL);
    struct nft_rule *last = &plan.rules[plan.rule_count - 1];
    netlink_batch_free(&last->expressions);
    nft_verdict(&last->expressions, NF_ACCEPT, NULL);
    nft_batch_begin(&batch);
    wall_plan_put_again(&plan, &batch, false);
    commit(&batch);
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "the content differs of rule refused, any other");
    CHECK_OK(wall_complete(&plain));
    CHECK_OK(wall_verify(&plain));

    struct nft_chain chain = plan.chains[0];
    chain.policy = NF_ACCEPT;
    nft_batch_begin(&batch);
    nft_chain_add(&batch, NFPROTO_INET, WALL_TABLE, &chain);
    commit(&batch);
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "the hook or policy differs of chain output");
    CHECK_ERROR(wall_complete(&plain), ERROR_UNAVAILABLE, "the hook or policy differs of chain output");
    chain.policy = NF_DROP;
    nft_batch_begin(&batch);
    nft_chain_add(&batch, NFPROTO_INET, WALL_TABLE, &chain);
    commit(&batch);
    CHECK_OK(wall_verify(&plain));

    /* A chain before ours that accepts decides nothing, but it is no part of the wall's own table. */
    chain = (struct nft_chain){.name = "more"};
    nft_batch_begin(&batch);
    nft_chain_add(&batch, NFPROTO_INET, WALL_TABLE, &chain);
    commit(&batch);
    CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "a further chain more");
    wall_plan_free(&plan);
}

static void test_changed(void **state) {
    (void)state;
    run_apart(body_changed);
}

static void body_foreign(void) {
    bool joined;
    struct netlink_batch batch = {0};
    nft_batch_begin(&batch);
    nft_table_add(&batch, NFPROTO_INET, WALL_TABLE, NULL, 0, 0);
    commit(&batch);
    CHECK_ERROR(raise_wall("one", &joined), ERROR_REFUSED, "net.namespace.shared: ");
    CHECK_ERROR(wall_complete(&plain), ERROR_UNAVAILABLE, "is not there");
}

static void test_foreign_table(void **state) {
    (void)state;
    run_apart(body_foreign);
}

/* A refused batch leaves nothing and names the object. */
static void body_refused(void) {
    struct netlink_batch batch = {0};
    struct wall_plan plan = {0};
    wall_plan_make(&plan, WALL_ALONE, 1, NULL, NULL);
    netlink_batch_free(&plan.rules[3].expressions);
    nft_lookup(&plan.rules[3].expressions, "no such set", REGISTER_A);
    nft_batch_begin(&batch);
    wall_plan_put_new(&plan, &batch, "", 0);
    nft_batch_end(&batch);
    int socket = -1;
    CHECK_OK(netlink_open(NETLINK_NETFILTER, &socket));
    CHECK_ERROR(nft_commit(socket, &batch, "raise"), ERROR_SYSTEM, plan.rules[3].name);
    bool found = true;
    uint32_t flags;
    uint8_t data[16];
    size_t length;
    CHECK_OK(nft_table_read(socket, NFPROTO_INET, WALL_TABLE, &found, &flags, data, sizeof data, &length));
    CHECK(!found);
    close(socket);
    netlink_batch_free(&batch);
    wall_plan_free(&plan);
}

static void test_refused(void **state) {
    (void)state;
    run_apart(body_refused);
}

/* -- what a workload sees -- */

/* Nobody answers held SYNs: the second one is reset by the kernel. */
static void body_unanswered(void) {
    raise_and_complete();
    double before = milliseconds();
    CHECK(attempt(SOCK_STREAM, "1.2.3.4", 443) == ECONNREFUSED);
    double took = milliseconds() - before;
    CHECK(took > 500 && took < 5000);
    CHECK(attempt(SOCK_STREAM, "127.0.0.1", 9) == ECONNREFUSED);
    before = milliseconds();
    CHECK(attempt(SOCK_DGRAM, "1.2.3.4", 53) == EPERM);
    CHECK(attempt(SOCK_DGRAM, "169.254.169.254", 80) == EPERM);
    CHECK(attempt(SOCK_DGRAM, "127.0.0.11", 53) == EPERM);
    CHECK(attempt(SOCK_DGRAM, "127.0.0.1", 53) == 0);
    CHECK(milliseconds() - before < 500);
    uint64_t denied = 0, logged = 0;
    CHECK_OK(wall_counters_read(-1, false, &denied, &logged));
    CHECK(denied == 4 && logged == 4); /* attempts, not packets: the retransmission is not counted */
}

static void test_unanswered(void **state) {
    (void)state;
    run_apart(body_unanswered);
}

struct answer_state {
    struct wall_sockets sockets;
    unsigned held, other, attributed;
    uint32_t next_sequence;
    bool gap;
};

static void answer(const struct denied_packet *packet, void *data) {
    struct answer_state *state = data;
    state->gap |= packet->log_sequence != state->next_sequence;
    state->next_sequence = packet->log_sequence + 1;
    if (!packet->held) {
        state->other++;
        return;
    }
    state->held++;
    if (socket_inode_find(state->sockets.socket_diagnosis, packet) != 0)
        state->attributed++;
    CHECK_OK(packet_reset(&state->sockets, packet));
}

/* Answers until the child has ended; the child's exit code. */
static int answer_until(pid_t child, struct answer_state *state) {
    int status = 0;
    for (;;) {
        struct pollfd event = {.fd = state->sockets.packet_log, .events = POLLIN};
        poll(&event, 1, 20);
        uint8_t bytes[8192];
        ssize_t length;
        unsigned malformed = 0;
        while ((length = recv(state->sockets.packet_log, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
            packet_log_parse(bytes, (size_t)length, answer, state, &malformed);
        CHECK(malformed == 0);
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
}

static void body_answered(void) {
    raise_and_complete();
    struct answer_state state = {.sockets = WALL_SOCKETS_NONE};
    CHECK_OK(wall_open_sockets(&state.sockets));
    bool bound = false;
    CHECK_OK(packet_log_bind(state.sockets.packet_log, &bound));
    CHECK(bound);
    /* Another holder of the same namespace waits. */
    struct wall_sockets second;
    CHECK_OK(wall_open_sockets(&second));
    CHECK_OK(packet_log_bind(second.packet_log, &bound));
    CHECK(!bound);

    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        double before = milliseconds();
        for (int i = 0; i < 100; i++)
            CHECK(attempt(SOCK_STREAM, "1.2.3.4", 443) == ECONNREFUSED);
        CHECK(attempt(SOCK_STREAM, "169.254.169.254", 80) == ECONNREFUSED);
        CHECK(attempt(SOCK_STREAM, "::ffff:10.0.0.1", 80) == ECONNREFUSED);
        int expected = access("/proc/net/if_inet6", F_OK) == 0 ? ECONNREFUSED : EAFNOSUPPORT;
        int number = attempt(SOCK_STREAM, "2001:db8::1", 443);
        CHECK(number == expected || number == EADDRNOTAVAIL);
        CHECK(attempt(SOCK_DGRAM, "1.2.3.4", 123) == EPERM);
        CHECK(milliseconds() - before <
              1000); /* ten times a busy machine's; unanswered, the first alone takes longer */
        _exit(0);
    }
    CHECK(answer_until(child, &state) == 0);
    CHECK(state.held >= 102 && state.attributed == state.held);
    CHECK(state.other == 1);
    CHECK(!state.gap);

    wall_close_sockets(&state.sockets);
    CHECK_OK(packet_log_bind(second.packet_log, &bound));
    CHECK(bound);
    wall_close_sockets(&second);
}

static void test_answered(void **state) {
    (void)state;
    run_apart(body_answered);
}

/* Above the rate nobody waits, and counters make up for what was not shown. */
static void body_flood(void) {
    raise_and_complete();
    struct answer_state state = {.sockets = WALL_SOCKETS_NONE};
    CHECK_OK(wall_open_sockets(&state.sockets));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 5000; i++)
            CHECK(attempt(SOCK_STREAM, "1.2.3.4", 443) == ECONNREFUSED);
        _exit(0);
    }
    CHECK(answer_until(child, &state) == 0);
    uint64_t denied = 0, logged = 0;
    CHECK_OK(wall_counters_read(state.sockets.rules, false, &denied, &logged));
    CHECK(denied == 5000);
    CHECK(logged >= 400 && logged < 5000 && state.held == logged && state.attributed == logged);
    wall_close_sockets(&state.sockets);
}

static void test_flood(void **state) {
    (void)state;
    run_apart(body_flood);
}

/* -- with interfaces -- */

static int listener(const char *address, uint16_t port) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, address, &own.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof own) == 0 && listen(fd, 8) == 0);
    return fd;
}

static void body_interfaces(void) {
    raise_and_complete();
    make_interfaces();
    CHECK_OK(wall_verify(&plain)); /* what came later is denied, and the wall is as it was */
    CHECK_OK(wall_complete(&plain));
    CHECK_OK(wall_verify(&plain));
    CHECK_OK(wall_complete(&plain));
    CHECK_OK(wall_verify(&plain));
    int fd = listener("0.0.0.0", 8080);
    CHECK(attempt(SOCK_STREAM, "10.9.0.1", 8080) == 0); /* the container's own address */
    CHECK(attempt(SOCK_STREAM, "127.0.0.1", 8080) == 0);
    close(fd);
    CHECK(attempt(SOCK_STREAM, "10.9.0.1", 8080) == ECONNREFUSED);
    CHECK(attempt(SOCK_STREAM, "10.9.0.2", 80) == ECONNREFUSED); /* through the interface */
    CHECK(attempt(SOCK_STREAM, "1.2.3.4", 80) == ECONNREFUSED);  /* no route but ours */
    CHECK(attempt(SOCK_DGRAM, "10.9.0.2", 80) == EPERM);
    CHECK(attempt(SOCK_DGRAM, "1.2.3.4", 80) == EPERM);

    /* A packet socket passes the output chain by; the second table must stop it where the kernel has it. */
    int socket_fd = -1;
    bool found = false;
    uint32_t flags;
    uint8_t data[256];
    size_t length;
    CHECK_OK(netlink_open(NETLINK_NETFILTER, &socket_fd));
    CHECK_OK(
        nft_table_read(socket_fd, NFPROTO_NETDEV, WALL_TABLE, &found, &flags, data, sizeof data, &length));
    if (found) {
        struct netlink_batch batch = {0};
        nft_batch_begin(&batch);
        nft_table_delete(&batch, NFPROTO_NETDEV, WALL_TABLE);
        commit(&batch);
        CHECK_ERROR(wall_verify(&plain), ERROR_UNAVAILABLE, "not as it was written");
        CHECK_OK(wall_complete(&plain));
        CHECK_OK(wall_verify(&plain));
    }
    CHECK_OK(wall_remove());
    CHECK_OK(
        nft_table_read(socket_fd, NFPROTO_NETDEV, WALL_TABLE, &found, &flags, data, sizeof data, &length));
    CHECK(!found);
    close(socket_fd);
}

static void test_interfaces(void **state) {
    (void)state;
    run_apart(body_interfaces);
}

/* A packet to oneself from the address of somebody outside must not make what is sent to him a reply. */
static void body_feigned_reply(void) {
    bool joined;
    CHECK_OK(raise_wall("0123456789abcdef", &joined));
    make_interfaces();
    CHECK_OK(wall_complete(&plain));
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(5353)},
                       own = {.sin_family = AF_INET, .sin_port = htons(5555)};
    CHECK(inet_pton(AF_INET, "198.51.100.7", &outside.sin_addr) == 1);
    CHECK(inet_pton(AF_INET, "10.9.0.1", &own.sin_addr) == 1);
    int feigned = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int real = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(feigned, (struct sockaddr *)&outside, sizeof outside) == 0);
    CHECK(bind(real, (struct sockaddr *)&own, sizeof own) == 0);
    CHECK(sendto(feigned, "x", 1, 0, (struct sockaddr *)&own, sizeof own) == 1);
    char byte;
    CHECK(recv(real, &byte, 1, 0) == 1);
    close(feigned);
    CHECK(setsockopt(real, SOL_SOCKET, SO_BINDTODEVICE, "pair0", sizeof "pair0") == 0);
    CHECK(sendto(real, "x", 1, 0, (struct sockaddr *)&outside, sizeof outside) < 0 && errno == EPERM);
    close(real);
}

static void test_feigned_reply(void **state) {
    (void)state;
    run_apart(body_feigned_reply);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),          cmocka_unit_test(test_changed),
        cmocka_unit_test(test_foreign_table), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unanswered),    cmocka_unit_test(test_answered),
        cmocka_unit_test(test_flood),         cmocka_unit_test(test_interfaces),
        cmocka_unit_test(test_feigned_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
