/* Names of hosts and the addresses that the broker answers for them (DESIGN.md section 7). The map is made
 * from the lines of network.allowed_hosts alone, so that a broker that is started again gives the same
 * answers: what programs keep of a name's address stays true. Pure: no system call.
 *
 *   exact names      198.18.0.0/16 and fd00:9800:0::/48, in the order of the policy, from 1
 *   names below "*.name"  198.19.0.0/16 and fd00:9800:1::/48, given when first asked for: the slot is a hash
 * of the name, or one of the next few
 *
 * Addresses and ranges of the policy have no such address: the workload uses their own. Which ports an
 * address has is match_host's to say; an exact name has those of its own lines and of every "*.name" above
 * it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/policy.h"

#define HOST_NAME_SIZE 254       /* RFC 1035 section 2.3.4: 253 bytes without the last dot, and NUL */
#define HOST_MAP_EXACT_MAX 65534 /* neither the first nor the last address of the /16 */
#define HOST_MAP_LEARNT_MAX 4096 /* names below all "*.name" lines together */

/* Writes the one form of a name: lower case, without one last dot. False, and "" in `out`, for what is no
 * host name: a byte that is not a letter, digit, '-' or '_' (so NUL, controls and anything beyond ASCII), a
 * label of 0 or more than 63 bytes or with '-' at its edge, more than 253 bytes, a last label that is a
 * number ("10", "0x7f"), for that is an address in one of its spellings. IDN comes as its A-labels. */
bool host_name_normalise(const void *bytes, size_t length, char out[HOST_NAME_SIZE]);

/* A name of the map. `name` stays the map's and is valid until the next host_map_learn or host_map_import. */
struct host_entry {
    const char *name;
    bool learnt;   /* below a "*.name" */
    uint16_t slot; /* the last 16 bits of both addresses */
    uint8_t ipv4[4], ipv6[16];
};

struct host_map;

/* Makes the map from lines as policy/hosts.h writes them. ERROR_INVALID for a line that cannot be read, and
 * for more than HOST_MAP_EXACT_MAX names. */
fallible host_map_make(const struct policy_list *allowed_hosts, struct host_map **out);
/* The same where the policy was changed under a running container: names that an earlier one had keep their
 * addresses, allowed or not, and no other name ever gets one of these. `names`: what host_names_remember has
 * collected; NULL or none: there was no earlier policy. */
fallible host_map_make_after(const struct string_list *names, const struct policy_list *allowed_hosts,
                             struct host_map **out);
/* Adds the names of these lines, and their "*.name", to those that had addresses before. */
fallible host_names_remember(struct string_list *names, const struct policy_list *allowed_hosts);
void host_map_free(struct host_map *map);
void host_map_cleanup(struct host_map **map);
#define host_map_owned __attribute__((cleanup(host_map_cleanup))) struct host_map *

/* How many exact names there are, those of earlier policies among them, and each of them: index 0 is the
 * first and has slot 1. */
size_t host_map_exact_count(const struct host_map *map);
struct host_entry host_map_exact(const struct host_map *map, size_t index);

/* Does a line allow this name (host_name_normalise) at any port? Learns nothing. */
bool host_map_allows(const struct host_map *map, const char *name);
/* The name's entry, if it has an address already; host_map_allows says whether it is still good for anything.
 */
bool host_map_find(const struct host_map *map, const char *name, struct host_entry *out);

enum host_answer {
    HOST_DENIED, /* no line allows the name */
    HOST_KNOWN,
    HOST_LEARNT, /* has its address from now on: tell whoever keeps the map (host_map_import) */
    HOST_FULL /* allowed, but HOST_MAP_LEARNT_MAX names below "*.name" lines have addresses, or too many whose
                 hash is the same */
};
/* The same, and a name below a "*.name" line gets an address. */
enum host_answer host_map_learn(struct host_map *map, const char *name, struct host_entry *out);

/* Learnt names in the order in which they were learnt, which is the order to import them in: two names with
 * the same hash have their slots by who came first. */
size_t host_map_learnt_count(const struct host_map *map);
struct host_entry host_map_learnt(const struct host_map *map, size_t index);
/* Puts a learnt name back to its slot. False, and nothing is done, for what host_map_learn would not have
 * made (the keeper does not trust the broker): no such line, a slot that is taken or not the name's, too
 * many. True for one that is there already. */
bool host_map_import(struct host_map *map, const char *name, uint16_t slot);

/* The name that an address stands for; NULL for one that stands for none. 4 bytes for AF_INET, 16 for
 * AF_INET6, in network order. */
const char *host_map_name(const struct host_map *map, int family, const uint8_t *address);
/* Is the address in the ranges that addresses of names are from, given or not? The broker never dials one. */
bool host_address_is_synthetic(int family, const uint8_t *address);
