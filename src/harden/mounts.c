/* config.json's mounts: what engines bring by themselves is removed, what somebody asked for is refused (a
 * container that silently lacks a mount is a riddle), what lies inside a mounted directory is covered. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "libocispec/names.h"
#include "policy/match.h"

#define CREDENTIALS_RULE "credentials.inherit_user_credentials: false"
#define MOUNTS_RULE "credentials.mounts"

enum verdict { MOUNT_KEEP, MOUNT_REMOVE };

/* One mount under judgement. */
struct candidate {
    struct oci_mount *mount; /* of hardened->config, may be changed */
    const struct mount_fact *fact;
    const struct policy *policy;
    const struct facts *facts;
    struct hardened *hardened;
    char *destination; /* clean */
    char *source;      /* clean; the real path where there is one */
    bool replaced;     /* a fresh file system now: nothing of the host's is mounted */
};

/* --- what the policy lets through --- */

static bool equals_or_within(const char *path, const char *place, bool below) {
    return below ? match_path_within(path, place) : strcmp(path, place) == 0;
}

/* Does a line of credentials.mounts name the source (as written or real) or, with `below`, the place in the
 * container? A host place is let through by its exact path only. */
static bool is_granted(const struct candidate *candidate, bool below) {
    for (size_t i = 0; i < candidate->policy->credential_mounts.values.count; i++) {
        const char *line = candidate->policy->credential_mounts.values.items[i];
        memory_owned char *expanded = line[0] == '~' && candidate->facts->owner_home != NULL
                                          ? text_formatted("%s%s", candidate->facts->owner_home, line + 1)
                                          : memory_copy_string(line);
        memory_owned char *place = match_path_clean(expanded);
        memory_owned char *written = candidate->mount->source != NULL
                                         ? match_path_clean(candidate->mount->source)
                                         : memory_copy_string("/");
        if (equals_or_within(candidate->source, place, below) || equals_or_within(written, place, below))
            return true;
        if (below && match_path_within(candidate->destination, place))
            return true;
    }
    return false;
}

/* --- options --- */

static bool has_option(const struct oci_mount *mount, const char *option) {
    return string_list_contains(&mount->options, option);
}

static void make_read_only(struct candidate *candidate, const char *why) {
    struct oci_mount *mount = candidate->mount;
    /* "ro" of a recursive bind is the top's alone: the cgroups below /sys would stay writable
     * (CVE-2023-25809). */
    bool whole = !has_option(mount, "rbind") || has_option(mount, "rro");
    if (harden_mount_is_read_only(mount) && whole)
        return;
    harden_mount_make_read_only(mount);
    harden_note(candidate->hardened, CHANGE_SET, "mounts", candidate->destination, NULL,
                "built-in: system mounts", NULL, "%s is read-only: %s", candidate->destination, why);
}

static void replace_mount(struct candidate *candidate, const char *type, const char *source,
                          const char *const *options, const char *what) {
    struct oci_mount *mount = candidate->mount;
    free(mount->type);
    free(mount->source);
    string_list_free(&mount->options);
    mount->type = memory_copy_string(type);
    mount->source = memory_copy_string(source);
    candidate->replaced = true;
    for (; *options != NULL; options++)
        string_list_append(&mount->options, *options);
    harden_note(candidate->hardened, CHANGE_SET, "mounts", candidate->destination, "namespace.added",
                "built-in: namespaces", NULL, "the container gets %s of its own, not the host's", what);
}

/* --- one rule after the other --- */

static fallible refuse(const struct candidate *candidate, const char *reason, const char *rule,
                       const char *what) {
    memory_owned char *remedy = harden_remedy("credentials", "mounts", candidate->source);
    return error_new(ERROR_REFUSED, "%s: the mount of %s at %s %s (%s, %s); to let it through: %s", reason,
                     candidate->source, candidate->destination, what, rule, candidate->policy->origin,
                     remedy);
}

static enum verdict remove_credential(const struct candidate *candidate, const char *what) {
    memory_owned char *remedy = harden_remedy("credentials", "mounts", candidate->destination);
    harden_note(candidate->hardened, CHANGE_REMOVED, "mounts", candidate->destination,
                "credential.mount.removed", CREDENTIALS_RULE, remedy, "%s at %s was not mounted", what,
                candidate->destination);
    return MOUNT_REMOVE;
}

static enum verdict remove_device(const struct candidate *candidate) {
    memory_owned char *remedy = harden_remedy("credentials", "mounts", candidate->source);
    harden_note(candidate->hardened, CHANGE_REMOVED, "mounts", candidate->destination, "device.removed",
                "built-in: standard devices", remedy,
                "only the standard devices are given; %s was not mounted", candidate->source);
    return MOUNT_REMOVE;
}

/* File systems that a container may mount by type. Others (debugfs, bpf, a disk's ext4, NFS) show the host.
 */
static bool is_plain_type(const char *type) {
    static const char *const types[] = {"proc",   "sysfs",  "tmpfs",   "devpts",
                                        "mqueue", "cgroup", "cgroup2", "overlay"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static fallible judge_type(struct candidate *candidate) {
    const char *type = candidate->mount->type;
    if (type == NULL)
        return NULL;
    if (strcmp(type, "sysfs") == 0)
        make_read_only(candidate, "the kernel's settings are the host's");
    if (strcmp(type, "cgroup") == 0 || strcmp(type, "cgroup2") == 0)
        make_read_only(candidate, "the limits would be the container's own to change");
    if (is_plain_type(type) || is_granted(candidate, true))
        return NULL;
    memory_owned char *what = text_formatted("is a file system of type %s, which shows the host", type);
    memory_owned char *remedy = harden_remedy("credentials", "mounts", candidate->destination);
    return error_new(ERROR_REFUSED,
                     "mount.host_path.refused: the mount at %s %s (%s, %s); to let it through: %s",
                     candidate->destination, what, MOUNTS_RULE, candidate->policy->origin, remedy);
}

/* What engines bind from the host when they are asked for its namespaces, or cannot mount afresh in a user
 * namespace. The container has its own namespaces here, so its own file systems are right. */
static bool is_system_mount(struct candidate *candidate) {
    static const char *const shm[] = {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k", NULL};
    static const char *const plain[] = {"nosuid", "noexec", "nodev", NULL};
    const char *source = candidate->source;
    if (strcmp(source, candidate->destination) != 0)
        return false;
    if (strcmp(source, "/dev/shm") == 0)
        replace_mount(candidate, "tmpfs", "shm", shm, "shared memory");
    else if (strcmp(source, "/dev/mqueue") == 0)
        replace_mount(candidate, "mqueue", "mqueue", plain, "message queues");
    else if (strcmp(source, "/proc") == 0)
        replace_mount(candidate, "proc", "proc", plain, "a list of processes");
    else if (strcmp(source, "/sys") == 0)
        make_read_only(candidate, "the kernel's settings are the host's");
    else
        return false;
    return true;
}

/* Tokens that nobody asked for: kubelet's service account, cloud identities, podman's and Docker's secrets.
 */
static bool is_secret_place(const char *destination) {
    return match_path_within(destination, "/run/secrets") ||
           match_path_within(destination, "/var/run/secrets");
}

static bool is_automatic(const struct candidate *candidate) {
    const struct mount_fact *fact = candidate->fact;
    if (fact->real_path != NULL &&
        strstr(fact->real_path, "/kubernetes.io~projected/kube-api-access-") != NULL)
        return true;
    return is_secret_place(candidate->destination) &&
           (fact->engine_made || fact->engine_volume ||
            strstr(candidate->destination, "/kubernetes.io/serviceaccount") != NULL);
}

static fallible judge_place(struct candidate *candidate, enum verdict *verdict) {
    const struct mount_fact *fact = candidate->fact;
    const char *place = fact->host_place;
    if (fact->place_relation == PLACE_NONE || is_granted(candidate, false))
        return NULL;
    if (fact->place_relation == PLACE_INSIDE) {
        if (fact->engine_made || fact->engine_volume)
            return NULL;
        if (strcmp(place, "/dev") == 0) {
            if (S_ISDIR(fact->status.st_mode) && !match_path_within(candidate->source, "/dev/shm") &&
                !(candidate->policy->gpu && strcmp(candidate->source, "/dev/dri") == 0))
                *verdict = remove_device(candidate);
            return NULL;
        }
        if (strcmp(place, "/sys") == 0) {
            make_read_only(candidate, "the kernel's settings are the host's");
            return NULL;
        }
        /* The content of an image, mounted beside the container (`--mount type=image`). */
        if (text_ends_with(fact->real_path, "/merged") && harden_mount_is_read_only(candidate->mount) &&
            strstr(fact->real_path, "/overlay") != NULL)
            return NULL;
    }
    static const char *const words[] = {[PLACE_EQUALS] = "would give the container the host's",
                                        [PLACE_CONTAINS] =
                                            "would give the container a directory of the host that holds",
                                        [PLACE_INSIDE] = "would give the container a part of the host's"};
    memory_owned char *what = text_formatted("%s %s", words[fact->place_relation], place);
    return refuse(candidate, "mount.host_path.refused", MOUNTS_RULE, what);
}

static bool is_foreign_device(const struct candidate *candidate) {
    const struct stat *status = &candidate->fact->status;
    if (!S_ISCHR(status->st_mode) && !S_ISBLK(status->st_mode))
        return false;
    if (candidate->policy->gpu &&
        harden_device_is_gpu(candidate->source, S_ISCHR(status->st_mode) ? 'c' : 'b',
                             candidate->fact->device_major))
        return false;
    return !harden_device_is_standard(S_ISCHR(status->st_mode) ? 'c' : 'b', candidate->fact->device_major,
                                      candidate->fact->device_minor);
}

/* What a line of credentials.mounts lets through with everything below it. */
static fallible judge_credential(struct candidate *candidate, enum verdict *verdict) {
    const struct mount_fact *fact = candidate->fact;
    const bool inherit = candidate->policy->inherit_user_credentials;
    if (!inherit && is_automatic(candidate)) {
        *verdict = remove_credential(candidate, "a credential that the engine brings by itself");
        return NULL;
    }
    if (fact->real_path == NULL) /* The source is missing: the mount itself will say so. */
        return NULL;
    if (is_foreign_device(candidate)) {
        *verdict = remove_device(candidate);
        return NULL;
    }
    if (S_ISSOCK(fact->status.st_mode) && !fact->engine_made)
        return refuse(candidate, "mount.socket.refused", MOUNTS_RULE,
                      "would give the container a socket of a process on the host");
    if (!inherit && fact->credential != NULL) {
        memory_owned char *what =
            text_formatted("would give the container credentials (%s)", fact->credential);
        return refuse(candidate, "mount.credential.refused", CREDENTIALS_RULE, what);
    }
    if (!inherit && (is_secret_place(candidate->destination) ||
                     strstr(fact->real_path, "/volumes/kubernetes.io~secret/") != NULL))
        return refuse(candidate, "mount.credential.refused", CREDENTIALS_RULE,
                      "would give the container a secret");
    if (fact->search_incomplete)
        return refuse(candidate, "mount.socket.refused", MOUNTS_RULE,
                      "holds more files than can be searched for control sockets");
    return NULL;
}

static fallible judge_source(struct candidate *candidate, enum verdict *verdict) {
    if (is_system_mount(candidate))
        return NULL;
    if (!is_granted(candidate, true))
        TRY(judge_credential(candidate, verdict));
    return *verdict == MOUNT_KEEP ? judge_place(candidate, verdict) : NULL;
}

/* Options that concern another mount than the one that is judged. "remount" would take back what was decided
 * about what is mounted there ("rw" of a /sys that was made read-only). Nothing else of config.md widens a
 * mount that was let through: r-options and idmap change the very tree that was judged, and an id mapping
 * gives the container's root no file that the container without a user namespace would not have as root
 * already. */
static void judge_options(struct candidate *candidate) {
    struct oci_mount *mount = candidate->mount;
    bool found = false;
    for (size_t i = mount->options.count; i > 0; i--)
        if (strcmp(mount->options.items[i - 1], "remount") == 0) {
            string_list_remove(&mount->options, i - 1);
            found = true;
        }
    if (found)
        harden_note(candidate->hardened, CHANGE_REMOVED, "mounts", candidate->destination, NULL,
                    "built-in: system mounts", NULL, "%s is mounted anew, not remounted",
                    candidate->destination);
}

/* What is mounted in the container, a cover of a credential say, would be mounted on the host as well, and
 * stay there. And what the host mounts below the source later, nobody has judged: a line that names the mount
 * lets it through. "slave" alone leaves the mounts below as they are on the host. */
static void judge_propagation(struct candidate *candidate) {
    static const char *const words[] = {"shared", "rshared", "slave", "rslave", NULL};
    struct oci_mount *mount = candidate->mount;
    const char *allowed = is_granted(candidate, true) ? "rslave" : "rprivate";
    for (size_t i = 0; i < mount->options.count; i++) {
        int word = oci_name_index(words, mount->options.items[i]);
        if (word < 0 || strcmp(words[word], allowed) == 0)
            continue;
        memory_replace_string(&mount->options.items[i], allowed);
        memory_owned char *remedy = harden_remedy("credentials", "mounts", candidate->destination);
        harden_note(
            candidate->hardened, CHANGE_SET, "mounts", candidate->destination, NULL,
            "built-in: no mount goes in or out", strcmp(allowed, "rprivate") == 0 ? remedy : NULL,
            "%s is %s instead of %s: what the host mounts there later %s, and the host hears of nothing",
            candidate->destination, allowed, words[word],
            strcmp(allowed, "rprivate") == 0 ? "nobody has judged" : "is seen");
    }
}

static fallible judge_mount(struct candidate *candidate, enum verdict *verdict) {
    *verdict = MOUNT_KEEP;
    judge_options(candidate);
    judge_propagation(candidate);
    /* What is made read-only, searched and given scratch places is root.path. */
    if (strcmp(candidate->destination, "/") == 0)
        return error_new(ERROR_REFUSED,
                         "mount.host_path.refused: a mount at / would replace the container's root (%s, %s); "
                         "name the directory in root.path",
                         MOUNTS_RULE, candidate->policy->origin);
    if (candidate->fact->bind)
        return judge_source(candidate, verdict);
    TRY(judge_type(candidate));
    /* An overlay of a user's directory is judged by its layers. */
    if (candidate->fact->real_path != NULL)
        return judge_source(candidate, verdict);
    return NULL;
}

/* Does anything of what the policy grants, or of the rules above, leave the inside of this mount alone? */
static bool is_covered(const struct candidate *candidate) {
    return (candidate->fact->control_sockets.count > 0 || candidate->fact->credentials.count > 0) &&
           !candidate->replaced && !is_granted(candidate, true);
}

fallible harden_mounts(const struct policy *policy, const struct facts *facts, struct hardened *hardened) {
    struct oci_config *config = hardened->config;
    size_t kept = 0;
    struct error *error = NULL;
    memory_owned bool *covered = memory_zeroed((config->mounts_count + 1) * sizeof(bool));
    for (size_t i = 0; i < config->mounts_count; i++) {
        enum verdict verdict = MOUNT_KEEP;
        if (error == NULL) {
            struct candidate candidate = {.mount = &config->mounts[i],
                                          .fact = hardened->mount_sources[i],
                                          .policy = policy,
                                          .facts = facts,
                                          .hardened = hardened};
            candidate.destination = match_path_clean(config->mounts[i].destination);
            candidate.source = candidate.fact->real_path != NULL
                                   ? memory_copy_string(candidate.fact->real_path)
                               : config->mounts[i].source != NULL ? match_path_clean(config->mounts[i].source)
                                                                  : memory_copy_string("/");
            error = judge_mount(&candidate, &verdict);
            covered[kept] = error == NULL && verdict == MOUNT_KEEP && is_covered(&candidate);
            if (candidate.replaced)
                hardened->mount_sources[i] = NULL;
            free(candidate.destination);
            free(candidate.source);
        }
        if (verdict == MOUNT_REMOVE) {
            harden_mount_clear(&config->mounts[i]);
            continue;
        }
        config->mounts[kept] = config->mounts[i];
        hardened->mount_sources[kept++] = hardened->mount_sources[i];
    }
    config->mounts_count = kept;
    for (size_t i = 0; error == NULL && i < kept; i++)
        if (covered[i])
            harden_cover(policy, hardened->mount_sources[i], i, hardened);
    return error;
}
