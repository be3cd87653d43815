#include "egress/egress.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/host_rules.h"
#include "egress/rules.h"

/* Entries of the table's user data. Type 0 is the comment that nft(8) shows. */
#define USER_DATA_DIGEST 0
#define USER_DATA_MARK 0x50
#define DIGEST_MAX 127

struct wall_identity {
    char digest[DIGEST_MAX + 1];
    uint32_t mark;
};

/* Reads the table's user data: *found false where there is no table. A table that is not ours has an empty
 * digest. */
static struct error *identity_read(int socket, bool *found, struct wall_identity *out) {
    uint8_t data[NFT_USERDATA_MAXLEN];
    uint32_t flags = 0;
    size_t length = 0;
    *out = (struct wall_identity){0};
    TRY(nft_table_read(socket, NFPROTO_INET, WALL_TABLE, found, &flags, data, sizeof data, &length));
    if (!*found)
        return NULL;
    if (flags != 0)
        return error_new(ERROR_UNAVAILABLE,
                         "the egress wall is not as it was written: its table has flags %#x", flags);
    struct netlink_attribute all = {.value = data, .length = length}, digest, mark;
    if (nft_user_data_find(all, USER_DATA_DIGEST, &digest) &&
        nft_user_data_find(all, USER_DATA_MARK, &mark) && digest.length > 0 &&
        digest.length <= sizeof out->digest) {
        memcpy(out->digest, digest.value, digest.length);
        out->digest[sizeof out->digest - 1] = '\0';
        out->mark = netlink_get_u32(mark);
    }
    return NULL;
}

static struct error *join(int socket, const char *digest, uint32_t *mark) {
    bool found = false, changed = false;
    struct wall_identity identity;
    TRY(identity_read(socket, &found, &identity));
    if (!found)
        return error_system(EEXIST, "join", "the egress wall, which went as it was joined");
    char comment[sizeof WALL_IDENTITY + DIGEST_MAX];
    TRY(nft_comment_read(socket, NFPROTO_INET, WALL_TABLE, "forward", comment, sizeof comment, &changed));
    if (changed && strncmp(comment, WALL_IDENTITY, strlen(WALL_IDENTITY)) == 0 && identity.digest[0] != '\0')
        memcpy(identity.digest, comment + strlen(WALL_IDENTITY), strlen(comment + strlen(WALL_IDENTITY)) + 1);
    if (identity.digest[0] == '\0')
        return error_new(ERROR_REFUSED,
                         "net.namespace.shared: the network namespace has a table inet " WALL_TABLE
                         " that is not an egress wall");
    if (strcmp(identity.digest, digest) != 0)
        return error_new(
            ERROR_REFUSED,
            "net.namespace.shared: the network namespace belongs to a container with another network "
            "policy (digest %.12s, not %.12s); all containers of a pod need the same one",
            identity.digest, digest);
    *mark = identity.mark;
    return NULL;
}

/* Elements of the sets that did not fit into the first batch: until they are there, less is let through. */
static struct error *elements_write(int socket, const struct wall_openings *openings) {
    size_t count = openings == NULL ? 0 : host_rules_elements(openings);
    for (size_t from = HOST_ELEMENTS_A_BATCH; from < count; from += HOST_ELEMENTS_A_BATCH) {
        netlink_batch_owned struct netlink_batch batch = {0};
        nft_batch_begin(&batch);
        host_rules_put_elements(openings, from, &batch);
        nft_batch_end(&batch);
        TRY(nft_commit(socket, &batch, "raise the egress wall"));
    }
    return NULL;
}

static struct error *put_or_join(const struct wall_network *network, enum wall_variant variant, bool *joined,
                                 uint32_t *mark) {
    *joined = false;
    const char *digest = network->digest;
    size_t length = strlen(digest);
    if (length == 0 || length > DIGEST_MAX)
        return error_new(ERROR_INVALID, "the digest of the network policy must have 1 to %d bytes",
                         DIGEST_MAX);
    TRY(routes_loopback_up());

    struct wall_identity identity = {0};
    while (identity.mark == 0)
        if (getrandom(&identity.mark, sizeof identity.mark, 0) < 0)
            return error_system(errno, "getrandom", "mark of the egress wall");
    uint8_t data[NFT_USERDATA_MAXLEN];
    size_t data_length = nft_user_data_put(data, USER_DATA_DIGEST, digest, (uint8_t)(length + 1));
    data_length +=
        nft_user_data_put(data + data_length, USER_DATA_MARK, &identity.mark, sizeof identity.mark);

    fd_owned int socket = -1;
    TRY(netlink_open(NETLINK_NETFILTER, &socket));
    wall_openings_owned struct wall_openings openings;
    bool needed;
    TRY(wall_openings_make(network, &openings, &needed));
    const struct wall_openings *opened = needed ? &openings : NULL;
    wall_plan_owned struct wall_plan plan = {0};
    wall_plan_make(&plan, variant, identity.mark, NULL, opened);
    netlink_batch_owned struct netlink_batch batch = {0};
    nft_batch_begin(&batch);
    wall_plan_put_new(&plan, &batch, data, data_length);
    nft_batch_end(&batch);
    struct error *error = nft_commit(socket, &batch, "raise the egress wall");
    *mark = identity.mark;
    if (error == NULL)
        return elements_write(socket, opened);
    if (error->number != EEXIST)
        return error;
    error_free(error);
    TRY(join(socket, digest, mark));
    *joined = true;
    return NULL;
}

struct error *wall_raise(const struct wall_network *network, bool *joined, uint32_t *mark) {
    return put_or_join(network, WALL_ALONE, joined, mark);
}

struct error *wall_observe(const struct wall_network *network, bool *joined) {
    const struct wall_network bare = {.digest = network->digest};
    uint32_t unused;
    return put_or_join(&bare, WALL_NONE, joined, &unused);
}

static struct error *plan_write(int socket, const struct wall_plan *plan, bool netdev) {
    netlink_batch_owned struct netlink_batch batch = {0};
    nft_batch_begin(&batch);
    wall_plan_put_again(plan, &batch, netdev);
    nft_batch_end(&batch);
    return nft_commit(socket, &batch, "complete the egress wall");
}

/* Is there a second wall at the interfaces? */
static struct error *hook_find(int socket, bool *hooked) {
    uint32_t flags;
    uint8_t ignored[NFT_USERDATA_MAXLEN];
    size_t ignored_length;
    TRY(nft_table_read(socket, NFPROTO_NETDEV, WALL_TABLE, hooked, &flags, ignored, sizeof ignored,
                       &ignored_length));
    return NULL;
}

/* Writes the plan of a variant unless it is there already, and reads it back. */
static struct error *variant_put(int socket, enum wall_variant variant, uint32_t mark,
                                 const struct link_list *links, const struct wall_openings *openings) {
    wall_plan_owned struct wall_plan plan = {0};
    wall_plan_make(&plan, variant, mark, links, openings);
    bool hooked = false;
    TRY(hook_find(socket, &hooked));
    bool netdev = hooked || variant == WALL_EGRESS;
    if (variant != WALL_EGRESS && !hooked) {
        struct error *difference = wall_plan_compare(&plan, socket);
        if (difference == NULL)
            return NULL;
        error_free(difference);
    }
    TRY(plan_write(socket, &plan, netdev));
    return wall_plan_compare(&plan, socket);
}

static struct error *complete_once(int socket, uint32_t mark, enum wall_variant without_links,
                                   const struct wall_openings *openings) {
    link_list_owned struct link_list links = {0};
    TRY(links_read(&links));
    if (links.count == 0)
        return variant_put(socket, without_links, mark, NULL, openings);
    struct error *error = variant_put(socket, WALL_EGRESS, mark, &links, openings);
    if (error == NULL || error->number == ENOENT)
        return error;
    /* Without CONFIG_NETFILTER_EGRESS (Linux 5.16) the output chain stands alone: packet sockets need
     * CAP_NET_RAW, which no workload behind a wall has. */
    error_free(error);
    return variant_put(socket, WALL_INTERFACES, mark, &links, openings);
}

/* The identity of our table, which must be there. */
static struct error *identity_require(int socket, struct wall_identity *identity) {
    bool found = false;
    TRY(identity_read(socket, &found, identity));
    if (!found || identity->mark == 0)
        return error_new(ERROR_UNAVAILABLE,
                         "the egress wall is not there: the network namespace has no table inet " WALL_TABLE
                         " of ours");
    return NULL;
}

/* A wall that stands, and what it should let through. */
struct standing {
    int socket;
    struct wall_identity identity;
    struct wall_openings openings;
    bool opened; /* else it has none */
};

static struct error *standing_open(const struct wall_network *network, struct standing *out) {
    TRY(wall_openings_make(network, &out->openings, &out->opened));
    TRY(netlink_open(NETLINK_NETFILTER, &out->socket));
    return identity_require(out->socket, &out->identity);
}

static void standing_close(struct standing *standing) {
    fd_close(standing->socket);
    wall_openings_free(&standing->openings);
}
#define standing_owned __attribute__((cleanup(standing_close)))

/* `without_links`: what is put up where there is lo alone. */
static struct error *complete(const struct wall_network *network, enum wall_variant without_links) {
    standing_owned struct standing wall = {.socket = -1};
    TRY(standing_open(network, &wall));
    const struct wall_openings *opened = wall.opened ? &wall.openings : NULL;
    /* ENOENT: an interface went between the list and the hook. */
    struct error *error = complete_once(wall.socket, wall.identity.mark, without_links, opened);
    for (int attempt = 0; attempt < 3 && error != NULL && error->number == ENOENT; attempt++) {
        error_free(error);
        error = complete_once(wall.socket, wall.identity.mark, without_links, opened);
    }
    TRY(error);
    return routes_local_add();
}

struct error *wall_complete(const struct wall_network *network) {
    return complete(network, WALL_ALONE);
}

struct error *wall_complete_early(const struct wall_network *network) {
    return complete(network, WALL_INTERFACES);
}

struct error *wall_mark_read(uint32_t *mark) {
    fd_owned int socket = -1;
    struct wall_identity identity;
    TRY(netlink_open(NETLINK_NETFILTER, &socket));
    TRY(identity_require(socket, &identity));
    *mark = identity.mark;
    return NULL;
}

/* Which variant `start` has put here, or will. */
static struct error *variant_find(int socket, const struct link_list *links, enum wall_variant *out) {
    bool hooked = false;
    TRY(hook_find(socket, &hooked));
    *out = hooked ? WALL_EGRESS : links->count > 0 ? WALL_INTERFACES : WALL_ALONE;
    return NULL;
}

struct error *wall_change(const struct wall_network *network) {
    standing_owned struct standing wall = {.socket = -1};
    TRY(standing_open(network, &wall));
    link_list_owned struct link_list links = {0};
    enum wall_variant variant;
    TRY(links_read(&links));
    TRY(variant_find(wall.socket, &links, &variant));
    wall_plan_owned struct wall_plan plan = {0};
    wall_plan_make(&plan, variant, wall.identity.mark, &links, &wall.openings);
    plan.egress_chain.devices = NULL;
    free(plan.devices);
    plan.devices = NULL;
    netlink_batch_owned struct netlink_batch batch = {0};
    nft_batch_begin(&batch);
    wall_plan_put_change(&plan, &batch);
    nft_batch_end(&batch);
    TRY(nft_commit(wall.socket, &batch, "change the egress wall"));
    TRY(elements_write(wall.socket, &wall.openings));
    return wall_plan_compare(&plan, wall.socket);
}

struct error *wall_verify(const struct wall_network *network) {
    standing_owned struct standing wall = {.socket = -1};
    TRY(standing_open(network, &wall));
    link_list_owned struct link_list links = {0};
    TRY(links_read(&links));
    error_owned first = NULL;
    for (enum wall_variant variant = WALL_ALONE; variant <= WALL_EGRESS; variant++) {
        wall_plan_owned struct wall_plan plan = {0};
        wall_plan_make(&plan, variant, wall.identity.mark, &links, wall.opened ? &wall.openings : NULL);
        /* Interfaces that came later are denied by the output chain, and are none of the hooks'. */
        plan.egress_chain.devices = NULL;
        struct error *difference = wall_plan_compare(&plan, wall.socket);
        if (difference == NULL)
            return NULL;
        /* The words of the variant that fits the namespace are the ones that help. */
        if (variant == WALL_ALONE || links.count > 0) {
            error_free(first);
            first = difference;
        } else {
            error_free(difference);
        }
    }
    struct error *result = first;
    first = NULL;
    return result;
}

struct error *wall_remove(void) {
    fd_owned int socket = -1;
    TRY(netlink_open(NETLINK_NETFILTER, &socket));
    for (int i = 0; i < 2; i++) {
        uint8_t family = i == 0 ? NFPROTO_NETDEV : NFPROTO_INET, ignored[NFT_USERDATA_MAXLEN];
        bool found = false;
        uint32_t flags;
        size_t ignored_length;
        TRY(nft_table_read(socket, family, WALL_TABLE, &found, &flags, ignored, sizeof ignored,
                           &ignored_length));
        if (!found)
            continue;
        netlink_batch_owned struct netlink_batch batch = {0};
        nft_batch_begin(&batch);
        nft_table_delete(&batch, family, WALL_TABLE);
        nft_batch_end(&batch);
        struct error *error = nft_commit(socket, &batch, "remove the egress wall");
        if (error != NULL && error->number == ENOENT) { /* somebody was faster */
            error_free(error);
            continue;
        }
        TRY(error);
    }
    return routes_local_remove();
}

struct error *wall_open_sockets(struct wall_sockets *out) {
    struct wall_sockets sockets = WALL_SOCKETS_NONE;
    struct error *error = netlink_open(NETLINK_NETFILTER, &sockets.packet_log);
    if (error == NULL)
        error = netlink_open(NETLINK_SOCK_DIAG, &sockets.socket_diagnosis);
    if (error == NULL)
        error = netlink_open(NETLINK_NETFILTER, &sockets.rules);
    if (error == NULL) {
        sockets.reset_ipv4 = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);
        if (sockets.reset_ipv4 < 0)
            error = error_system(errno, "socket", "raw IPv4");
    }
    if (error == NULL) {
        sockets.reset_ipv6 = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);
        if (sockets.reset_ipv6 < 0 && errno != EAFNOSUPPORT)
            error = error_system(errno, "socket", "raw IPv6");
    }
    bool bound;
    if (error == NULL)
        error = packet_log_bind(sockets.packet_log, &bound);
    if (error != NULL) {
        wall_close_sockets(&sockets);
        return error;
    }
    *out = sockets;
    return NULL;
}

void wall_close_sockets(struct wall_sockets *sockets) {
    fd_close(sockets->packet_log);
    fd_close(sockets->socket_diagnosis);
    fd_close(sockets->reset_ipv4);
    fd_close(sockets->reset_ipv6);
    fd_close(sockets->rules);
    *sockets = WALL_SOCKETS_NONE;
}

struct error *wall_counters_read(int rules, bool open, uint64_t *counted, uint64_t *logged) {
    fd_owned int own = -1;
    if (rules < 0)
        TRY(netlink_open(NETLINK_NETFILTER, &own));
    int socket = rules < 0 ? own : rules;
    /* `logged` first: whatever comes between the two reads is then too much counted, never too much logged.
     */
    TRY(nft_counter_read(socket, NFPROTO_INET, WALL_TABLE, WALL_COUNTER_LOGGED, logged));
    return nft_counter_read(socket, NFPROTO_INET, WALL_TABLE,
                            open ? WALL_COUNTER_LET_OUT : WALL_COUNTER_DENIED, counted);
}
