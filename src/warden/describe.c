#include "warden/describe.h"

#include <linux/sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

struct name {
    uint64_t value;
    const char *text;
};

/* What workloads ask for and a sandbox denies; others go by their number. */
static const struct name families[] = {
    {AF_NETLINK, "AF_NETLINK"},
    {AF_PACKET, "AF_PACKET"},
    {AF_VSOCK, "AF_VSOCK"},
    {AF_ALG, "AF_ALG"},
    {AF_BLUETOOTH, "AF_BLUETOOTH"},
    {AF_CAN, "AF_CAN"},
    {AF_XDP, "AF_XDP"},
    {AF_TIPC, "AF_TIPC"},
    {AF_KEY, "AF_KEY"},
    {AF_RDS, "AF_RDS"},
    {AF_SMC, "AF_SMC"},
    {AF_QIPCRTR, "AF_QIPCRTR"},
};

static const struct name namespaces[] = {
    {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mount"}, {CLONE_NEWPID, "pid"},       {CLONE_NEWNET, "network"},
    {CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"},  {CLONE_NEWCGROUP, "cgroup"}, {CLONE_NEWTIME, "time"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void describe_family(struct text *out, uint32_t family) {
    for (size_t i = 0; i < COUNT(families); i++)
        if (families[i].value == family) {
            text_format(out, " for %s (%u)", families[i].text, family);
            return;
        }
    text_format(out, " for address family %u", family);
}

/* CLONE_NEWTIME shares its bit with clone's exit signal (CSIGNAL): there it is none. */
static void describe_namespaces(struct text *out, uint64_t flags, bool is_clone) {
    const char *between = " with a new ";
    if (is_clone)
        flags &= ~(uint64_t)CSIGNAL;
    for (size_t i = 0; i < COUNT(namespaces); i++)
        if (flags & namespaces[i].value) {
            text_format(out, "%s%s", between, namespaces[i].text);
            between = " and ";
        }
    if (strcmp(between, " and ") == 0)
        text_append(out, " namespace");
}

void describe_call(struct text *out, const char *call, const struct seccomp_data *data) {
    text_format(out, "The system call %s", call);
    if (strcmp(call, "socket") == 0 || strcmp(call, "socketpair") == 0)
        describe_family(out, (uint32_t)data->args[0]);
    else if (strcmp(call, "ioctl") == 0)
        text_format(out, " with request %#x", (uint32_t)data->args[1]);
    else if (strcmp(call, "clone") == 0 || strcmp(call, "unshare") == 0)
        describe_namespaces(out, data->args[0], strcmp(call, "clone") == 0);
}
