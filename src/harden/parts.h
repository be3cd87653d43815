/* The parts of harden(), one for each area of DESIGN.md section 6. Each changes hardened->config in place and
 * notes what it did. All pure: nothing here may call the kernel, not even stat. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "facts/facts.h"
#include "harden/harden.h"
#include "libocispec/config.h"
#include "policy/policy.h"

/* credentials.c */
void harden_environment(struct oci_process *process, const struct policy *policy, struct hardened *hardened);
/* Why this variable counts as a credential ("its name is that of a credential"), or NULL. Never holds the
 * value. */
const char *harden_environment_reason(const struct policy *policy, const char *name, const char *value);

/* capabilities.c */
void harden_capabilities(struct oci_process *process, const struct policy *policy, struct hardened *hardened);

/* scheduling.c: what would need CAP_SYS_NICE of the machine, and AppArmor's "unconfined" */
void harden_scheduling(struct oci_process *process, const struct policy *policy, struct hardened *hardened);

/* mounts.c */
fallible harden_mounts(const struct policy *policy, const struct facts *facts, struct hardened *hardened);

/* covers.c: hides what lies inside a mounted directory. `index` is the mount's. */
void harden_cover(const struct policy *policy, const struct mount_fact *fact, size_t index,
                  struct hardened *hardened);

/* rootfs.c: read-only root, scratch places, decoys. `engine_read_only`: what the engine asked for. */
void harden_rootfs(const struct policy *policy, const struct facts *facts, struct hardened *hardened);

/* inside.c: log.inside */
void harden_inside(const struct policy *policy, struct hardened *hardened);

/* access.c */
/* The last of "ro" and "rw" counts, as for mount(8). */
bool harden_mount_is_read_only(const struct oci_mount *mount);
/* With all that it holds, where it is recursive. */
void harden_mount_make_read_only(struct oci_mount *mount);
/* A line of the policy that stands for a path: absolute, "~", "~/..." or "@cwd"; clean, the caller frees it.
 * NULL for others. */
char *harden_line_path(const struct hardened *hardened, const struct facts *facts, const char *line);
/* Nothing is denied then that can be let through, and the mounts are what the engine made of them. */
bool harden_is_learning(const struct policy *policy);
/* Once for each path. */
void harden_add_rebind(struct hardened *hardened, const char *path, enum rebind_kind kind);
/* Without "@mounts" among what is writable, the engine's mounts are read-only but for the lines. */
void harden_writable_mounts(const struct policy *policy, const struct facts *facts,
                            struct hardened *hardened);
/* The plan for Landlock, from everything that was decided before. */
fallible harden_access(const struct policy *policy, const struct facts *facts, struct hardened *hardened);

/* places.c */
fallible harden_hidden(const struct policy *policy, const struct facts *facts, struct hardened *hardened);
fallible harden_protected(const struct policy *policy, const struct facts *facts, struct hardened *hardened);

/* namespaces.c */
fallible harden_namespaces(const struct policy *policy, const struct facts *facts, struct hardened *hardened);

/* devices.c */
void harden_devices(const struct policy *policy, struct hardened *hardened);
bool harden_device_is_standard(char type, unsigned major, unsigned minor);
/* What processes.gpu lets through: by its name, and a number that a graphics driver can have. */
bool harden_device_is_gpu(const char *path, char type, int64_t major);

/* annotations.c: those that count for nothing, and what else the policy has to say about itself */
void harden_annotations(const struct policy *policy, struct hardened *hardened);

/* policy_files.c: no container may write to what its next policy is read from. */
fallible harden_policy_files(const struct policy *policy, const struct facts *facts,
                             const struct hardened *hardened);

/* masks.c */
void harden_masks(struct hardened *hardened);

/* limits.c */
void harden_limits(const struct policy *policy, struct hardened *hardened);

/* seccomp.c: what is denied and what is observed. */
fallible harden_seccomp(const struct policy *policy, const struct facts *facts, struct hardened *hardened);

/* network.c */
fallible harden_network(const struct policy *policy, const struct facts *facts, struct hardened *hardened);
/* Where there are allowed hosts: /etc/resolv.conf and /etc/hosts, as the engine has mounted them, are
 * read-only. */
void harden_resolver_files(const struct policy *policy, struct hardened *hardened);

/* harden.c */
/* "linux" of the config, made where it is absent. */
struct oci_linux *harden_linux(struct hardened *hardened);
/* "credentials: {mounts: [PATH]}", the item quoted where YAML would read it otherwise; the caller frees it.
 */
char *harden_remedy(const char *section, const char *key, const char *item);
/* Appends a mount that has no source of the engine's. Takes over nothing; `options` end with NULL. */
void harden_add_mount(struct hardened *hardened, const char *destination, const char *type,
                      const char *source, const char *const *options);
/* Frees one mount's members. */
void harden_mount_clear(struct oci_mount *mount);
