#include "egress/routes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/memory.h"
#include "egress/netlink.h"

struct error *routes_loopback_up(void) {
    fd_owned int socket = -1;
    TRY(netlink_open(NETLINK_ROUTE, &socket));
    netlink_batch_owned struct netlink_batch batch = {0};
    struct ifinfomsg link = {
        .ifi_family = AF_UNSPEC, .ifi_index = LOOPBACK_INDEX, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    netlink_message_begin(&batch, RTM_NEWLINK, NLM_F_ACK, &link, sizeof link, "lo");
    netlink_message_end(&batch);
    return netlink_transact(socket, &batch, 1, "bring up");
}

/* Without a preferred source, the kernel takes the destination itself as the source address (measured); a
 * connection whose both ends are the same address would then look like the container's own traffic. */
static void route_build(struct netlink_batch *batch, uint16_t type, uint16_t flags, int family) {
    static const uint8_t loopback_ipv4[4] = {127, 0, 0, 1};
    static const uint8_t loopback_ipv6[16] = {[15] = 1};
    struct rtmsg route = {.rtm_family = (unsigned char)family,
                          .rtm_table = RT_TABLE_MAIN,
                          .rtm_protocol = RTPROT_STATIC,
                          .rtm_scope = RT_SCOPE_HOST,
                          .rtm_type = RTN_LOCAL};
    netlink_message_begin(batch, type, NLM_F_ACK | flags, &route, sizeof route, "local default route, %s",
                          family == AF_INET ? "IPv4" : "IPv6");
    netlink_put_u32(batch, RTA_OIF, LOOPBACK_INDEX);
    /* The engine's default routes, some of which come after ours, have no metric or a small one and win. */
    netlink_put_u32(batch, RTA_PRIORITY, UINT32_MAX);
    if (family == AF_INET)
        netlink_put(batch, RTA_PREFSRC, loopback_ipv4, sizeof loopback_ipv4);
    else
        netlink_put(batch, RTA_PREFSRC, loopback_ipv6, sizeof loopback_ipv6);
    netlink_message_end(batch);
}

static struct error *routes_change(uint16_t type, uint16_t flags, int results[2]) {
    fd_owned int socket = -1;
    TRY(netlink_open(NETLINK_ROUTE, &socket));
    netlink_batch_owned struct netlink_batch batch = {0};
    route_build(&batch, type, flags, AF_INET);
    route_build(&batch, type, flags, AF_INET6);
    return netlink_transact_each(socket, &batch, results, "change routes");
}

struct error *routes_local_add(void) {
    int results[2] = {0};
    TRY(routes_change(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, results));
    if (results[0] != 0 && results[0] != EEXIST)
        return error_system(results[0], "add", "local default route, IPv4");
    /* Where IPv6 is off (not built, ipv6.disable, disable_ipv6 on lo) there is no ::1 and no way out either:
     * the kernel refuses the route in one of these ways, and every IPv6 connect at once. */
    switch (results[1]) {
    case 0:
    case EEXIST:
    case EAFNOSUPPORT:
    case EOPNOTSUPP:
    case EADDRNOTAVAIL:
    case EACCES:
    case ENODEV:
    case EINVAL:
        return NULL;
    default:
        return error_system(results[1], "add", "local default route, IPv6");
    }
}

struct error *routes_local_remove(void) {
    int results[2] = {0};
    TRY(routes_change(RTM_DELROUTE, 0, results));
    if (results[0] != 0 && results[0] != ESRCH)
        return error_system(results[0], "remove", "local default route, IPv4");
    return NULL; /* IPv6's went with lo's address, or was never there */
}

struct link_entry {
    uint32_t index, below, master;
    char name[IFNAMSIZ];
};
struct link_entries {
    struct link_entry *items;
    size_t count;
};

static struct error *link_collect(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct link_entries *entries = data;
    struct ifinfomsg header;
    struct netlink_attribute table[IFLA_LINK_NETNSID + 1];
    if (type != RTM_NEWLINK ||
        !netlink_message_read(payload, length, &header, sizeof header, table, IFLA_LINK_NETNSID))
        return NULL;
    struct link_entry entry = {.index = (uint32_t)header.ifi_index,
                               .master = netlink_get_u32(table[IFLA_MASTER])};
    if (table[IFLA_LINK_NETNSID].value == NULL) /* else the link below is in another namespace */
        entry.below = netlink_get_u32(table[IFLA_LINK]);
    struct netlink_attribute name = table[IFLA_IFNAME];
    if (name.value == NULL || name.length == 0 || name.length > sizeof entry.name)
        return error_system(EPROTO, "list links", "link %u has no name", entry.index);
    memcpy(entry.name, name.value, name.length);
    entry.name[sizeof entry.name - 1] = '\0';
    entries->items = memory_resize(entries->items, entries->count + 1, sizeof entry);
    entries->items[entries->count++] = entry;
    return NULL;
}

struct error *links_read(struct link_list *out) {
    fd_owned int socket = -1;
    TRY(netlink_open(NETLINK_ROUTE, &socket));
    netlink_batch_owned struct netlink_batch batch = {0};
    struct ifinfomsg all = {.ifi_family = AF_UNSPEC};
    netlink_message_begin(&batch, RTM_GETLINK, NLM_F_DUMP, &all, sizeof all, "links");
    netlink_message_end(&batch);
    struct link_entries entries = {0};
    struct error *error = NULL;
    for (int attempt = 0; attempt < 10; attempt++) {
        entries.count = 0;
        error_free(error);
        error = netlink_query(socket, &batch, link_collect, &entries, "list");
        if (error == NULL || error->number != EAGAIN) /* EAGAIN: a link came or went meanwhile */
            break;
    }
    struct link_list list = {0};
    for (size_t i = 0; error == NULL && i < entries.count; i++) {
        const struct link_entry *entry = &entries.items[i];
        if (entry->index == LOOPBACK_INDEX)
            continue;
        struct link link = {.index = entry->index,
                            .stacked = entry->below != 0 && entry->below != entry->index};
        memcpy(link.name, entry->name, sizeof link.name);
        for (size_t j = 0; j < entries.count; j++)
            link.stacked |= entries.items[j].master == entry->index;
        list.items = memory_resize(list.items, list.count + 1, sizeof link);
        list.items[list.count++] = link;
    }
    free(entries.items);
    if (error != NULL)
        return error;
    *out = list;
    return NULL;
}

void link_list_free(struct link_list *list) {
    free(list->items);
    *list = (struct link_list){0};
}

static struct error *neighbour_collect(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    bool *neighbour = data;
    struct rtmsg route;
    struct netlink_attribute table[RTA_VIA + 1];
    if (type != RTM_NEWROUTE || !netlink_message_read(payload, length, &route, sizeof route, table, RTA_VIA))
        return NULL;
    *neighbour = route.rtm_type == RTN_UNICAST && table[RTA_GATEWAY].value == NULL &&
                 table[RTA_VIA].value == NULL && netlink_get_u32(table[RTA_OIF]) > LOOPBACK_INDEX;
    return NULL;
}

struct error *routes_is_neighbour(int family, const uint8_t *address, bool *out) {
    fd_owned int socket = -1;
    *out = false;
    TRY(netlink_open(NETLINK_ROUTE, &socket));
    netlink_batch_owned struct netlink_batch batch = {0};
    unsigned char length = family == AF_INET ? 4 : 16;
    struct rtmsg route = {.rtm_family = (unsigned char)family, .rtm_dst_len = (unsigned char)(8 * length)};
    netlink_message_begin(&batch, RTM_GETROUTE, 0, &route, sizeof route, "route");
    netlink_put(&batch, RTA_DST, address, length);
    netlink_message_end(&batch);
    return netlink_query(socket, &batch, neighbour_collect, out, "look up");
}
