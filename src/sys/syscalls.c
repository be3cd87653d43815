#include "sys/syscalls.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X32_BIT 0x40000000

/* include/uapi/asm-generic/unistd.h; the numbers are common to all architectures that pinfold is built for.
 */
static const struct {
    const char *name;
    int number;
} recent_calls[] = {
    {"cachestat", 451},         {"fchmodat2", 452},         {"map_shadow_stack", 453}, {"futex_wake", 454},
    {"futex_wait", 455},        {"futex_requeue", 456},     {"statmount", 457},        {"listmount", 458},
    {"lsm_get_self_attr", 459}, {"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
    {"setxattrat", 463},        {"getxattrat", 464},        {"listxattrat", 465},      {"removexattrat", 466},
    {"open_tree_attr", 467},    {"file_getattr", 468},      {"file_setattr", 469},     {"listns", 470},
};

int syscall_number_recent(const char *name) {
    for (size_t i = 0; i < sizeof recent_calls / sizeof *recent_calls; i++)
        if (strcmp(recent_calls[i].name, name) == 0)
            return recent_calls[i].number;
    return -1;
}

void syscall_name(uint32_t audit_arch, int number, char *name, unsigned long size) {
    uint32_t arch = audit_arch;
    /* x32 has no AUDIT_ARCH of its own: a call is told by a bit of its number. */
    if (audit_arch == AUDIT_ARCH_X86_64 && (number & X32_BIT) != 0)
        arch = SCMP_ARCH_X32;
    name[0] = '\0';
    char *known = seccomp_syscall_resolve_num_arch(arch, number);
    if (known != NULL) {
        snprintf(name, size, "%s", known);
        free(known);
        return;
    }
    int plain = arch == SCMP_ARCH_X32 ? number & ~X32_BIT : number;
    for (size_t i = 0; i < sizeof recent_calls / sizeof *recent_calls; i++)
        if (recent_calls[i].number == plain)
            snprintf(name, size, "%s", recent_calls[i].name);
}
