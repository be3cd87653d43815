/* Whether a policy lets a host through: for the wall, the broker and `pinfold why`. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "policy/hosts.h"
#include "policy/policy.h"

/* Does a line of network.allowed_hosts let the host through at this port? `asked` is one name or one address
 * (policy_host_read); *index is the first line that does. An address that is private, or a cloud's metadata
 * service, needs a line that says private, however wide a range is; multicast and what else is always refused
 * is so by the widest, too. ERROR_INVALID for a line that cannot be
 * read, which the reader of policies refuses. */
fallible match_host(const struct policy_list *lines, const struct policy_host *asked, uint16_t port,
                    bool *allowed, size_t *index);
