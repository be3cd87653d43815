#include "sys/landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The calls have the same numbers everywhere (all since Linux 5.1). */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define RULE_PATH_BENEATH 1

/* The kernel's own structures: the first as it was in ABI 1, whatever the header has added since. */
struct ruleset_attributes {
    uint64_t handled_access_fs;
};
struct path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

int sys_landlock_create(uint64_t handled) {
    struct ruleset_attributes attributes = {handled};
    return (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
}

int sys_landlock_allow(int ruleset, int fd, uint64_t rights) {
    struct path_beneath rule = {rights, fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
}

int sys_landlock_restrict(int ruleset) {
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
