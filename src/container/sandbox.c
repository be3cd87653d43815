#include "container/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/memory.h"
#include "facts/passwd.h"
#include "harden/parts.h"
#include "libocispec/config.h"
#include "libocispec/spec_document.h"

#define SEARCH_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Shown as they are: links where the machine has links (merged /usr), else read-only mounts. */
static const char *const system_directories[] = {"/usr",   "/bin",   "/sbin",   "/lib",
                                                 "/lib32", "/lib64", "/libx32", "/opt"};

/* What programs look for in /etc and what holds nothing about this machine's people. Directories are mounted
 * read-only, files are copied. */
static const char *const system_files[] = {
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/services",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/terminfo",
    "/etc/fonts",
    "/etc/debian_version",
    "/etc/os-release",
    "/etc/python3",
    "/etc/java",
    "/etc/perl",
    "/etc/bash.bashrc",
    "/etc/profile",
    "/etc/inputrc",
    "/etc/magic",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/shells",
    "/etc/rpc",
    "/etc/networks",
    "/etc/gitconfig",
};

/* The same, of /etc, whose names have a version. */
static const char *const versioned_files[] = {"java-*-openjdk", "python3.[0-9]*"};

/* Variables that are about the terminal and the language; all others come by --env alone. */
static const char *const plain_variables[] = {"TERM", "COLORTERM", "NO_COLOR", "LANG",     "LANGUAGE",
                                              "TZ",   "COLUMNS",   "LINES",    "CLICOLOR", "FORCE_COLOR"};

/* ---- the root's skeleton ---- */

static struct error *make_directories(int rootfs, const char *path, mode_t mode) {
    memory_owned char *copy = memory_copy_string(path + 1);
    for (char *slash = strchr(copy, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(rootfs, copy, 0755) < 0 && errno != EEXIST)
            return error_system(errno, "mkdir", "%s in the sandbox", copy);
        *slash = '/';
    }
    if (mkdirat(rootfs, copy, mode) < 0 && errno != EEXIST)
        return error_system(errno, "mkdir", "%s in the sandbox", copy);
    return NULL;
}

static struct error *write_file(int rootfs, const char *path, const char *content, size_t length) {
    return file_replace(rootfs, path + 1, content, length, 0644);
}

static void mount_add(struct oci_config *config, const char *source, const char *destination, bool writable) {
    config->mounts = memory_resize(config->mounts, config->mounts_count + 1, sizeof *config->mounts);
    struct oci_mount *mount = &config->mounts[config->mounts_count++];
    *mount = (struct oci_mount){.destination = memory_copy_string(destination),
                                .type = memory_copy_string("bind"),
                                .source = memory_copy_string(source)};
    /* Recursive: a project may have mounts of its own below it; "rro" makes all of a system directory
     * read-only. */
    string_list_append(&mount->options, "rbind");
    string_list_append(&mount->options, "nosuid");
    string_list_append(&mount->options, "nodev");
    if (!writable)
        string_list_append(&mount->options, "rro");
}

static struct error *add_system_directory(struct oci_config *config, int rootfs, const char *path) {
    struct stat status;
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length > 0) {
        target[length] = '\0';
        if (symlinkat(target, rootfs, path + 1) < 0)
            return error_system(errno, "symlink", "%s in the sandbox", path);
        return NULL;
    }
    if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode))
        return NULL;
    TRY(make_directories(rootfs, path, 0755));
    mount_add(config, path, path, false);
    return NULL;
}

static struct error *add_system_file(struct oci_config *config, int rootfs, const char *path) {
    struct stat status;
    if (stat(path, &status) < 0)
        return NULL;
    memory_owned char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    TRY(make_directories(rootfs, parent, 0755));
    if (S_ISDIR(status.st_mode)) {
        TRY(make_directories(rootfs, path, 0755));
        mount_add(config, path, path, false);
        return NULL;
    }
    if (!S_ISREG(status.st_mode) || access(path, R_OK) < 0)
        return NULL;
    text_owned struct text bytes = {0};
    TRY(file_read(AT_FDCWD, path, SCHEMA_BYTES_MAX, &bytes));
    return write_file(rootfs, path, text_string(&bytes), bytes.length);
}

static struct error *add_versioned_files(struct oci_config *config, int rootfs) {
    struct dirent **entries = NULL;
    int count = scandir("/etc", &entries, NULL, alphasort);
    struct error *error = NULL;
    for (int i = 0; i < count; i++) {
        for (size_t k = 0; error == NULL && k < sizeof versioned_files / sizeof versioned_files[0]; k++)
            if (fnmatch(versioned_files[k], entries[i]->d_name, FNM_PERIOD) == 0) {
                memory_owned char *path = text_formatted("/etc/%s", entries[i]->d_name);
                error = add_system_file(config, rootfs, path);
            }
        free(entries[i]);
    }
    free(entries);
    return error;
}

/* The caller's own line of passwd, without anybody else's. *home and *name are the caller's to free. */
static void caller_identity(char **name, char **home, char **shell) {
    *name = NULL;
    text_owned struct text bytes = {0};
    struct error *error = file_read(AT_FDCWD, "/etc/passwd", PASSWD_BYTES_MAX, &bytes);
    error_ignore(error); /* a machine without passwd: a made-up name serves */
    char *rest = NULL;
    for (char *line = bytes.data ? strtok_r(bytes.data, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        char *fields[7] = {0};
        size_t count = 0;
        for (char *field = strsep(&line, ":"); field != NULL && count < 7; field = strsep(&line, ":"))
            fields[count++] = field;
        if (count != 7 || strtoul(fields[2], NULL, 10) != geteuid())
            continue;
        *name = memory_copy_string(fields[0]);
        *home = memory_copy_string(fields[5]);
        *shell = memory_copy_string(fields[6]);
        return;
    }
    *name = memory_copy_string("agent");
    *home = memory_copy_string("/home/agent");
    *shell = memory_copy_string("/bin/sh");
}

static struct error *skeleton_make(struct oci_config *config, int rootfs, const char *name, const char *home,
                                   const char *shell) {
    static const char *const directories[] = {"/etc", "/proc", "/sys", "/dev", "/var", "/mnt", "/home"};
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
        TRY(make_directories(rootfs, directories[i], 0755));
    TRY(make_directories(rootfs, "/tmp", 01777));
    TRY(make_directories(rootfs, "/var/tmp", 01777));
    TRY(make_directories(rootfs, "/run", 0755));
    if (symlinkat("/run", rootfs, "var/run") < 0)
        return error_system(errno, "symlink", "/var/run in the sandbox");
    TRY(make_directories(rootfs, home, 0700));
    for (size_t i = 0; i < sizeof system_directories / sizeof system_directories[0]; i++)
        TRY(add_system_directory(config, rootfs, system_directories[i]));
    for (size_t i = 0; i < sizeof system_files / sizeof system_files[0]; i++)
        TRY(add_system_file(config, rootfs, system_files[i]));
    TRY(add_versioned_files(config, rootfs));
    text_owned struct text passwd = {0};
    text_owned struct text group = {0};
    if (geteuid() != 0) {
        text_append(&passwd, "root:x:0:0:root:/root:/usr/sbin/nologin\n");
        text_append(&group, "root:x:0:\n");
    }
    text_format(&passwd, "%s:x:%u:%u:%s:%s:%s\n", name, geteuid(), getegid(), name, home, shell);
    text_append(&passwd, "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
    text_format(&group, "%s:x:%u:\nnogroup:x:65534:\n", name, getegid());
    TRY(write_file(rootfs, "/etc/passwd", text_string(&passwd), passwd.length));
    TRY(write_file(rootfs, "/etc/group", text_string(&group), group.length));
    static const char hosts[] = "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n";
    TRY(write_file(rootfs, "/etc/hosts", hosts, sizeof hosts - 1));
    return write_file(rootfs, "/etc/hostname", "sandbox\n", strlen("sandbox\n"));
}

/* ---- config.json ---- */

static void variable_add(struct string_list *env, const char *name, const char *value) {
    string_list_append_owned(env, text_formatted("%s=%s", name, value));
}

static void environment_make(const struct sandbox_request *request, const struct policy *policy,
                             const char *name, const char *home, const char *shell, struct string_list *env) {
    variable_add(env, "PATH", SEARCH_PATH);
    variable_add(env, "HOME", home);
    variable_add(env, "USER", name);
    variable_add(env, "LOGNAME", name);
    variable_add(env, "SHELL", shell);
    variable_add(env, "PWD", request->workspace);
    for (char *const *item = request->caller_environment; *item != NULL; item++) {
        size_t length = strcspn(*item, "=");
        if ((*item)[length] != '=' || length == 0)
            continue;
        memory_owned char *variable = strndup(*item, length);
        bool plain = text_starts_with(variable, "LC_");
        for (size_t i = 0; i < sizeof plain_variables / sizeof plain_variables[0]; i++)
            plain = plain || strcmp(plain_variables[i], variable) == 0;
        /* Nothing is inherited. A credential is handed to hardening all the same, which takes it out and
         * records by name that it was there: whoever reads the log sees what the sandbox has kept away. */
        if (plain ||
            (policy->confined && harden_environment_reason(policy, variable, *item + length + 1) != NULL))
            string_list_append(env, *item);
    }
    for (size_t i = 0; i < request->environment.count; i++)
        string_list_append(env, request->environment.items[i]);
}

static void mapping_set(struct oci_id_mapping **mappings, size_t *count, uint32_t id) {
    free(*mappings);
    *mappings = memory_zeroed(sizeof **mappings);
    **mappings = (struct oci_id_mapping){.container_id = id, .host_id = id, .size = 1};
    *count = 1;
}

/* The document that `spec` prints, as the frame: namespaces, masks, /proc, /dev and /sys are no different
 * here. */
static struct error *frame_read(struct oci_config **out) {
    json_owned struct json_writer json = {0};
    oci_spec_document(geteuid() != 0, geteuid(), getegid(), true, &json);
    return oci_config_parse("the sandbox's frame", text_string(&json.text), json.text.length, out);
}

static void mount_remove(struct oci_config *config, const char *type) {
    for (size_t i = config->mounts_count; i-- > 0;) {
        if (config->mounts[i].type == NULL || strcmp(config->mounts[i].type, type) != 0)
            continue;
        harden_mount_clear(&config->mounts[i]);
        memmove(&config->mounts[i], &config->mounts[i + 1],
                (config->mounts_count - i - 1) * sizeof config->mounts[i]);
        config->mounts_count--;
    }
}

static void namespace_add(struct oci_linux *linux_config, const char *type) {
    for (size_t i = 0; i < linux_config->namespaces_count; i++)
        if (strcmp(linux_config->namespaces[i].type, type) == 0)
            return;
    linux_config->namespaces = memory_resize(linux_config->namespaces, linux_config->namespaces_count + 1,
                                             sizeof *linux_config->namespaces);
    linux_config->namespaces[linux_config->namespaces_count++] =
        (struct oci_namespace){.type = memory_copy_string(type)};
}

/* As much as the policy lets a container have; an unprivileged user's has none to begin with. */
static void capabilities_set(struct oci_capabilities *capabilities, const struct policy *policy) {
    struct string_list *const sets[] = {&capabilities->bounding, &capabilities->effective,
                                        &capabilities->permitted};
    for (size_t set = 0; set < sizeof sets / sizeof sets[0]; set++) {
        string_list_free(sets[set]);
        for (size_t i = 0; geteuid() == 0 && i < policy->capabilities.values.count; i++)
            string_list_append(sets[set], policy->capabilities.values.items[i]);
    }
}

static void config_complete(struct oci_config *config, const struct sandbox_request *request,
                            const struct policy *policy) {
    struct oci_process *process = config->process;
    process->terminal = request->terminal;
    process->user = (struct oci_user){.uid = geteuid(), .gid = getegid()};
    string_list_free(&process->args);
    for (size_t i = 0; i < request->command.count; i++)
        string_list_append(&process->args, request->command.items[i]);
    memory_replace_string(&process->cwd, request->workspace);
    capabilities_set(process->capabilities, policy);
    /* The limit of the caller stays: raising it is not ours, and builds need more than 1024 files. */
    for (size_t i = 0; i < process->rlimits_count; i++)
        free(process->rlimits[i].type);
    process->rlimits_count = 0;
    memory_replace_string(&config->hostname, "sandbox");
    namespace_add(config->linux_config, "network");
    namespace_add(config->linux_config, "cgroup");
    if (geteuid() != 0) {
        namespace_add(config->linux_config, "user");
        mapping_set(&config->linux_config->uid_mappings, &config->linux_config->uid_mappings_count,
                    geteuid());
        mapping_set(&config->linux_config->gid_mappings, &config->linux_config->gid_mappings_count,
                    getegid());
    }
    mount_remove(config, "cgroup");
    mount_remove(config, "cgroup2");
    mount_add(config, request->workspace, request->workspace, true);
}

static struct error *bundle_fill(int directory, const struct sandbox_request *request,
                                 const struct policy *policy, struct oci_config *config) {
    if (mkdirat(directory, "rootfs", 0755) < 0)
        return error_system(errno, "mkdir", "the sandbox's root");
    fd_owned int rootfs = openat(directory, "rootfs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (rootfs < 0)
        return error_system(errno, "open", "the sandbox's root");
    memory_owned char *name = NULL;
    memory_owned char *home = NULL;
    memory_owned char *shell = NULL;
    caller_identity(&name, &home, &shell);
    if (home[0] != '/' || home[1] == '\0') {
        free(home);
        home = text_formatted("/home/%s", name);
    }
    TRY(skeleton_make(config, rootfs, name, home, shell));
    string_list_free(&config->process->env);
    environment_make(request, policy, name, home, shell, &config->process->env);
    config_complete(config, request, policy);
    json_owned struct json_writer json = {0};
    schema_write(&oci_config_schema, config, &json);
    return file_replace(directory, "config.json", text_string(&json.text), json.text.length, 0600);
}

struct error *sandbox_bundle_make(const char *bundle, const struct sandbox_request *request,
                                  const struct policy *policy) {
    /* Modes of the skeleton are those of a system, whatever the caller's umask. */
    mode_t umask_before = umask(0);
    struct error *error = NULL;
    struct oci_config *config = NULL;
    fd_owned int directory = -1;
    if (mkdir(bundle, 0700) < 0 ||
        (directory = open(bundle, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        error = error_system(errno, "make", "bundle %s", bundle);
    if (error == NULL)
        error = frame_read(&config);
    if (error == NULL)
        error = bundle_fill(directory, request, policy, config);
    oci_config_free(config);
    umask(umask_before);
    return error;
}

static int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *place) {
    (void)status;
    (void)kind;
    (void)place;
    (void)!remove(path);
    return 0;
}

void sandbox_bundle_remove(const char *bundle) {
    /* FTW_MOUNT: should something be mounted there after all, it is not ours to remove. */
    (void)!nftw(bundle, entry_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
