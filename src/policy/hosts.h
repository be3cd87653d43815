/* Hosts that a policy allows: names, "*.name", addresses and ranges, with ports. The same code reads a
 * policy, compares two policies and, for the wall and `pinfold why`, answers whether a host is allowed. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

#define POLICY_PORTS_MAX 32

enum policy_host_kind { POLICY_HOST_NAME, POLICY_HOST_BELOW, POLICY_HOST_RANGE };

struct policy_host {
    enum policy_host_kind kind;
    char *name;                /* lower case; for BELOW without the "*." */
    unsigned char address[16]; /* of a RANGE, bits beyond the prefix are 0 */
    unsigned char family;      /* AF_INET or AF_INET6 */
    unsigned char prefix;
    uint16_t ports[POLICY_PORTS_MAX]; /* rising */
    size_t ports_count;
    bool is_private; /* may resolve to, or be, a private address */
};

/* Reads "name", "*.name", "name:443", "192.0.2.0/24", "[2001:db8::1]:443", and what policy_host_write wrote.
 * An error has no position: the caller puts it before. *out is to be cleared. */
fallible policy_host_read(const char *item, struct policy_host *out);
void policy_host_clear(struct policy_host *host);
/* A port more; ERROR_INVALID for one that is none, or too many. */
fallible policy_host_add_port(struct policy_host *host, const char *digits);
/* ERROR_INVALID for an address that is always refused, or is private and not said to be. */
fallible policy_host_check(const struct policy_host *host);
/* May an address be reached by a line that says private, or does not? What is always refused lies in no line
 * of its own, but wide ranges hold it, and names lead to it. A name is reachable. */
bool policy_host_is_reachable(const struct policy_host *asked, bool is_private);
/* The same of one address: 4 bytes for AF_INET, 16 for AF_INET6. */
bool policy_address_is_reachable(int family, const unsigned char *address, bool is_private);
/* The one form of it: "example.org", "example.org:443,8443 private"; ports 80 and 443 are not written. */
char *policy_host_write(const struct policy_host *host);

/* Does `wide` let through everything that `narrow` does? */
bool policy_host_covers(const struct policy_host *wide, const struct policy_host *narrow);
bool policy_host_matches_name(const struct policy_host *host, const char *name, uint16_t port);
bool policy_host_matches_address(const struct policy_host *host, int family, const unsigned char *address,
                                 uint16_t port);
