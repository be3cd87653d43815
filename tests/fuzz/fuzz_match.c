/* Matchers: a host that is read is written so that it reads the same, covers itself, and matches its own
 * name; globs end in time. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "policy/hosts.h"
#include "policy/match.h"

static void require(bool condition) {
    if (!condition)
        abort();
}

static void host_check(const char *item) {
    struct policy_host host, again;
    error_owned error = policy_host_read(item, &host);
    if (error == NULL) {
        memory_owned char *written = policy_host_write(&host);
        error_owned unread = policy_host_read(written, &again);
        require(unread == NULL);
        memory_owned char *rewritten = policy_host_write(&again);
        require(strcmp(written, rewritten) == 0);
        require(policy_host_covers(&host, &again) && policy_host_covers(&again, &host));
        if (host.kind == POLICY_HOST_NAME)
            require(policy_host_matches_name(&host, host.name, host.ports[0]));
        if (host.kind == POLICY_HOST_BELOW)
            require(!policy_host_matches_name(&host, host.name, host.ports[0]));
        if (host.kind == POLICY_HOST_RANGE)
            require(policy_host_matches_address(&host, host.family, host.address, host.ports[0]));
        error_owned checked = policy_host_check(&host);
        require(checked == NULL || checked->kind == ERROR_INVALID);
        policy_host_clear(&again);
    }
    policy_host_clear(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4096)
        return 0;
    memory_owned char *one = memory_zeroed(size + 1);
    memcpy(one, data, size);
    size_t length = strlen(one);
    const char *other = length < size ? one + length + 1 : "";
    host_check(one);
    host_check(other);
    require(strpbrk(one, "*?") != NULL || match_name(one, one));
    (void)match_name(one, other);
    memory_owned char *clean = match_path_clean(one);
    memory_owned char *twice = match_path_clean(clean);
    require(clean[0] == '/' && strcmp(clean, twice) == 0 && match_path_within(clean, "/"));
    return 0;
}
