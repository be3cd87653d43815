/* linux.netDevices (config-linux.md, "Network Devices"): devices of the runtime's network namespace are moved
 * into the container's, with their permanent addresses. Routes do not move. What the kernel does with them
 * when the namespace ends (a physical one comes back, a virtual one is gone) is not the runtime's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "libocispec/config.h"

/* A way into a network namespace without being in it. */
struct network_access {
    int rtnetlink; /* a NETLINK_ROUTE socket that was opened there */
    int namespace; /* the namespace itself; it lives as long as this is open */
};
#define NETWORK_ACCESS_NONE ((struct network_access){-1, -1})
/* Of the calling thread's network namespace. */
fallible network_access_open(struct network_access *out);
void network_access_close(struct network_access *access);

struct moved_device;
/* What was moved, for moving it back. `struct net_devices moved = NET_DEVICES_NONE;` is empty. */
struct net_devices {
    struct network_access outside, inside;
    struct moved_device *items;
    size_t count;
};
#define NET_DEVICES_NONE ((struct net_devices){NETWORK_ACCESS_NONE, NETWORK_ACCESS_NONE, NULL, 0})

/* Before anything is made: every device must be in the calling thread's network namespace, and a namespace
 * that is joined (`joined`: its descriptor, else -1) must be another one. ERROR_INVALID names the field. */
fallible net_devices_check(const struct oci_net_device *devices, size_t count, int joined);

/* Moves all devices, renames them, adds their permanent addresses of global scope again and brings them up.
 * Takes over the descriptors of `inside`. After an error, too, net_devices_return moves back what was moved
 * until then. Errors name linux.netDevices.NAME. */
fallible net_devices_move(const struct oci_net_device *devices, size_t count, struct network_access inside,
                          struct net_devices *moved);

/* For a create that fails, before the namespace goes: every device gets its place, name, addresses and state
 * back. Goes on after an error; the first one is returned. */
fallible net_devices_return(struct net_devices *moved);

/* Forgets what was moved: it stays where it is. */
void net_devices_free(struct net_devices *moved);
