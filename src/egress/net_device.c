#include "egress/net_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "egress/netlink.h"

/* An address as the kernel told it: what RTM_NEWADDR wants again. */
struct device_address {
    struct ifaddrmsg header;
    uint32_t flags;
    uint8_t *attributes;
    size_t length;
    char label[IFNAMSIZ]; /* IPv4: what comes after the device's name; "" for none */
};

struct moved_device {
    char name[IFNAMSIZ];      /* outside */
    char temporary[IFNAMSIZ]; /* inside, until it has the name that it is to have */
    uint32_t outside;         /* index */
    uint32_t inside;          /* index, 0: not looked up yet */
    bool up;                  /* outside */
    bool moved;
    struct device_address *addresses;
    size_t addresses_count;
};

struct error *network_access_open(struct network_access *out) {
    fd_owned int namespace = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (namespace < 0)
        return error_system(errno, "open", "the network namespace");
    TRY(netlink_open(NETLINK_ROUTE, &out->rtnetlink));
    out->namespace = fd_take(&namespace);
    return NULL;
}

void network_access_close(struct network_access *access) {
    fd_close(access->rtnetlink);
    fd_close(access->namespace);
    *access = NETWORK_ACCESS_NONE;
}

/* ---- looking ---- */

struct link_state {
    uint32_t index;
    uint32_t flags;
    char name[IFNAMSIZ];
};

static struct error *link_take(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct link_state *out = data;
    struct ifinfomsg header;
    struct netlink_attribute table[IFLA_IFNAME + 1];
    if (type != RTM_NEWLINK ||
        !netlink_message_read(payload, length, &header, sizeof header, table, IFLA_IFNAME))
        return NULL;
    out->index = (uint32_t)header.ifi_index;
    out->flags = header.ifi_flags;
    const struct netlink_attribute *name = &table[IFLA_IFNAME];
    if (name->value != NULL)
        snprintf(out->name, sizeof out->name, "%.*s", (int)name->length, (const char *)name->value);
    return NULL;
}

/* The link of this index or, where that is 0, of this name; ENODEV where there is none. */
static struct error *link_find(int rtnetlink, uint32_t index, const char *name, struct link_state *out) {
    *out = (struct link_state){0};
    netlink_batch_owned struct netlink_batch batch = {0};
    struct ifinfomsg header = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
    netlink_message_begin(&batch, RTM_GETLINK, 0, &header, sizeof header, "%s", name);
    if (index == 0)
        netlink_put_string(&batch, IFLA_IFNAME, name);
    netlink_message_end(&batch);
    TRY(netlink_query(rtnetlink, &batch, link_take, out, "look up"));
    return out->index != 0 ? NULL : error_system(ENODEV, "look up", "%s", name);
}

/* The device outside that the key names. */
static struct error *device_find(int rtnetlink, const char *name, struct link_state *out) {
    struct error *error = link_find(rtnetlink, 0, name, out);
    if (error != NULL && error->number == ENODEV) {
        error_free(error);
        return error_new(ERROR_INVALID,
                         "linux.netDevices.%s: no network device has this name in the "
                         "runtime's network namespace",
                         name);
    }
    TRY(error_context(error, "linux.netDevices.%s", name));
    if (strcmp(out->name, name) == 0)
        return NULL;
    /* The kernel finds a device by its alternative names too, which move with it. */
    return error_new(ERROR_INVALID,
                     "linux.netDevices.%s: this is an alternative name of the network device %s; use that",
                     name, out->name);
}

struct error *net_devices_check(const struct oci_net_device *devices, size_t count, int joined) {
    if (count == 0)
        return NULL;
    struct stat own, other;
    if (joined >= 0) {
        if (stat("/proc/self/ns/net", &own) < 0 || fstat(joined, &other) < 0)
            return error_system(errno, "stat", "the network namespace");
        if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
            return error_new(ERROR_INVALID, "linux.netDevices: needs an entry of type \"network\" in "
                                            "linux.namespaces that is not the runtime's own");
    }
    fd_owned int rtnetlink = -1;
    TRY(netlink_open(NETLINK_ROUTE, &rtnetlink));
    for (size_t i = 0; i < count; i++) {
        struct link_state state;
        TRY(device_find(rtnetlink, devices[i].device, &state));
    }
    return NULL;
}

/* What a user may set; the rest is the kernel's own account of the address (if_addr.h). */
#define ADDRESS_FLAGS                                                                                        \
    (IFA_F_NODAD | IFA_F_OPTIMISTIC | IFA_F_HOMEADDRESS | IFA_F_MANAGETEMPADDR | IFA_F_NOPREFIXROUTE |       \
     IFA_F_MCAUTOJOIN)

/* The label of an IPv4 address is the device's name, as a rule with nothing or ":" and a word behind it. */
static void label_take(struct device_address *address, const struct netlink_attribute *label,
                       const char *device) {
    char text[IFNAMSIZ] = "";
    size_t length = strlen(device);
    if (label->value != NULL)
        snprintf(text, sizeof text, "%.*s", (int)label->length, (const char *)label->value);
    if (strncmp(text, device, length) == 0 && text[length] == ':')
        memcpy(address->label, text + length, sizeof text - length);
}

static struct error *address_take(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    static const uint16_t kept[] = {IFA_ADDRESS, IFA_LOCAL, IFA_BROADCAST, IFA_CACHEINFO, IFA_RT_PRIORITY};
    struct moved_device *device = data;
    struct ifaddrmsg header;
    struct netlink_attribute table[IFA_RT_PRIORITY + 1];
    if (type != RTM_NEWADDR ||
        !netlink_message_read(payload, length, &header, sizeof header, table, IFA_RT_PRIORITY))
        return NULL;
    uint32_t flags =
        table[IFA_FLAGS].value != NULL ? netlink_get_u32(table[IFA_FLAGS]) : (uint32_t)header.ifa_flags;
    if (header.ifa_index != device->outside || header.ifa_scope != RT_SCOPE_UNIVERSE ||
        (flags & IFA_F_PERMANENT) == 0)
        return NULL;
    netlink_batch_owned struct netlink_batch attributes = {0};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (table[kept[i]].value != NULL)
            netlink_put(&attributes, kept[i], table[kept[i]].value, table[kept[i]].length);
    device->addresses =
        memory_resize(device->addresses, device->addresses_count + 1, sizeof *device->addresses);
    struct device_address *address = &device->addresses[device->addresses_count++];
    *address = (struct device_address){.header = header,
                                       .flags = flags & ADDRESS_FLAGS,
                                       .attributes = attributes.data,
                                       .length = attributes.length};
    attributes.data = NULL; /* handed over */
    label_take(address, &table[IFA_LABEL], device->name);
    return NULL;
}

static void addresses_free(struct moved_device *device) {
    for (size_t i = 0; i < device->addresses_count; i++)
        free(device->addresses[i].attributes);
    free(device->addresses);
    device->addresses = NULL;
    device->addresses_count = 0;
}

static struct error *addresses_read(int rtnetlink, struct moved_device *device) {
    netlink_batch_owned struct netlink_batch batch = {0};
    struct ifaddrmsg all = {.ifa_family = AF_UNSPEC};
    netlink_message_begin(&batch, RTM_GETADDR, NLM_F_DUMP, &all, sizeof all, "addresses");
    netlink_message_end(&batch);
    struct error *error = NULL;
    for (int attempt = 0; attempt < 10; attempt++) {
        addresses_free(device);
        error_free(error);
        error = netlink_query(rtnetlink, &batch, address_take, device, "list");
        if (error == NULL || error->number != EAGAIN) /* EAGAIN: an address came or went meanwhile */
            break;
    }
    return error;
}

/* ---- moving ---- */

static void link_message(struct netlink_batch *batch, uint32_t index, unsigned flags, unsigned change,
                         const char *subject) {
    struct ifinfomsg link = {
        .ifi_family = AF_UNSPEC, .ifi_index = (int)index, .ifi_flags = flags, .ifi_change = change};
    netlink_message_begin(batch, RTM_NEWLINK, NLM_F_ACK, &link, sizeof link, "%s", subject);
}

/* The kernel takes the name into account only after the move, and leaves a device there whose name is taken:
 * `name` must be free at the other end. */
static struct error *link_move(int rtnetlink, uint32_t index, int namespace, const char *name,
                               const char *subject) {
    netlink_batch_owned struct netlink_batch batch = {0};
    link_message(&batch, index, 0, 0, subject);
    netlink_put_u32(&batch, IFLA_NET_NS_FD, (uint32_t) namespace);
    netlink_put_string(&batch, IFLA_IFNAME, name);
    netlink_message_end(&batch);
    return netlink_transact(rtnetlink, &batch, 1, "move");
}

static struct error *link_rename(int rtnetlink, uint32_t index, const char *name) {
    netlink_batch_owned struct netlink_batch batch = {0};
    link_message(&batch, index, 0, 0, name);
    netlink_put_string(&batch, IFLA_IFNAME, name);
    netlink_message_end(&batch);
    return netlink_transact(rtnetlink, &batch, 1, "give the name");
}

static struct error *link_up(int rtnetlink, uint32_t index, const char *name) {
    netlink_batch_owned struct netlink_batch batch = {0};
    link_message(&batch, index, IFF_UP, IFF_UP, name);
    netlink_message_end(&batch);
    return netlink_transact(rtnetlink, &batch, 1, "bring up");
}

static struct error *addresses_add(int rtnetlink, const struct moved_device *device,
                                   const struct link_state *link) {
    for (size_t i = 0; i < device->addresses_count; i++) {
        const struct device_address *address = &device->addresses[i];
        netlink_batch_owned struct netlink_batch batch = {0};
        struct ifaddrmsg header = {.ifa_family = address->header.ifa_family,
                                   .ifa_prefixlen = address->header.ifa_prefixlen,
                                   .ifa_flags = (uint8_t)address->flags,
                                   .ifa_scope = address->header.ifa_scope,
                                   .ifa_index = link->index};
        netlink_message_begin(&batch, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &header,
                              sizeof header, "an %s address of the device",
                              header.ifa_family == AF_INET ? "IPv4" : "IPv6");
        netlink_put_u32(&batch, IFA_FLAGS, address->flags);
        netlink_put_raw(&batch, address->attributes, address->length);
        memory_owned char *label = text_formatted("%s%s", link->name, address->label);
        if (address->label[0] != '\0' && strlen(label) < IFNAMSIZ)
            netlink_put_string(&batch, IFA_LABEL, label);
        netlink_message_end(&batch);
        TRY(netlink_transact(rtnetlink, &batch, 1, "add"));
    }
    return NULL;
}

/* A name that nobody has in either namespace: the name that is wanted can be taken inside, and then the
 * device is found again by this one. */
static struct error *temporary_name(struct moved_device *device) {
    uint8_t random[6];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return error_system(errno, "getrandom", "a name");
    snprintf(device->temporary, sizeof device->temporary, "pf%02x%02x%02x%02x%02x%02x", random[0], random[1],
             random[2], random[3], random[4], random[5]);
    return NULL;
}

static struct error *device_give(const struct net_devices *moved, struct moved_device *device,
                                 const char *target) {
    int outside = moved->outside.rtnetlink, inside = moved->inside.rtnetlink;
    struct link_state state;
    TRY(temporary_name(device));
    TRY(addresses_read(outside, device));
    TRY(link_move(outside, device->outside, moved->inside.namespace, device->temporary, device->name));
    device->moved = true;
    TRY(link_find(inside, 0, device->temporary, &state));
    device->inside = state.index;
    struct error *error = link_rename(inside, device->inside, target);
    if (error != NULL && error->number == EEXIST) {
        error_free(error);
        return error_new(ERROR_INVALID,
                         "the container's network namespace has a network device %s already; expected "
                         "another name, or one that ends with %%d",
                         target);
    }
    TRY(error);
    TRY(link_find(inside, device->inside, target, &state)); /* the name that the kernel made of a template */
    TRY(addresses_add(inside, device, &state));
    return link_up(inside, device->inside, target);
}

struct error *net_devices_move(const struct oci_net_device *devices, size_t count,
                               struct network_access inside, struct net_devices *moved) {
    moved->inside = inside;
    TRY(network_access_open(&moved->outside));
    moved->items = memory_zeroed((count + 1) * sizeof *moved->items);
    for (size_t i = 0; i < count; i++) {
        struct moved_device *device = &moved->items[i];
        struct link_state state;
        TRY(device_find(moved->outside.rtnetlink, devices[i].device, &state));
        memcpy(device->name, state.name, sizeof device->name);
        device->outside = state.index;
        device->up = (state.flags & IFF_UP) != 0;
        moved->count = i + 1;
        TRY(error_context(device_give(moved, device, oci_net_device_target(&devices[i])),
                          "linux.netDevices.%s", device->name));
    }
    return NULL;
}

static struct error *device_return(const struct net_devices *moved, struct moved_device *device) {
    struct link_state state;
    if (device->inside == 0) {
        TRY(link_find(moved->inside.rtnetlink, 0, device->temporary, &state));
        device->inside = state.index;
    }
    TRY(link_move(moved->inside.rtnetlink, device->inside, moved->outside.namespace, device->name,
                  device->name));
    device->moved = false;
    TRY(link_find(moved->outside.rtnetlink, 0, device->name, &state));
    TRY(addresses_add(moved->outside.rtnetlink, device, &state));
    return device->up ? link_up(moved->outside.rtnetlink, state.index, device->name) : NULL;
}

struct error *net_devices_return(struct net_devices *moved) {
    error_owned first = NULL;
    for (size_t i = moved->count; i-- > 0;) {
        struct moved_device *device = &moved->items[i];
        if (!device->moved)
            continue;
        struct error *error = device_return(moved, device);
        if (error == NULL)
            continue;
        error_free(first);
        first = error_context(error, "linux.netDevices.%s: could not be moved back", device->name);
    }
    struct error *result = first;
    first = NULL;
    return result;
}

void net_devices_free(struct net_devices *moved) {
    for (size_t i = 0; i < moved->count; i++)
        addresses_free(&moved->items[i]);
    free(moved->items);
    network_access_close(&moved->outside);
    network_access_close(&moved->inside);
    *moved = NET_DEVICES_NONE;
}
