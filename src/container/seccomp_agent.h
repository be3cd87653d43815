/* The seccomp agent of linux.seccomp.listenerPath (config-linux.md, "The Container Process State"): who
 * answers what the profile notifies. The runtime sends it the listener of init and of each exec, with a
 * document that says whose it is, and keeps nothing. */
#pragma once

#include "base/error.h"
#include "container/state.h"

struct seccomp_agent {
    int connection; /* to listenerPath, -1: the container has no agent */
    int document;   /* a memfd with the container process state */
};
#define SECCOMP_AGENT_NONE                                                                                   \
    { -1, -1 }

/* In the runtime's own namespaces, since the path is one of theirs. Where the container has no agent, *out is
 * SECCOMP_AGENT_NONE. */
fallible seccomp_agent_connect(const struct container *container, struct seccomp_agent *out);
/* Writes the document for the process that is about to load the filter. `status`: "creating" for the
 * container's init, "running" for an exec; `pid` in the runtime's process namespace. */
fallible seccomp_agent_describe(const struct seccomp_agent *agent, const struct container *container,
                                const char *status, pid_t pid);
/* In the container: sends the document and the listener as one message. */
fallible seccomp_agent_give(const struct seccomp_agent *agent, int listener);
void seccomp_agent_close(struct seccomp_agent *agent);
#define seccomp_agent_owned __attribute__((cleanup(seccomp_agent_close)))
