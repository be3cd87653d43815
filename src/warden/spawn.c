/* warden_spawn: a fresh image of this program, with a sealed plan and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "libocispec/schema_table.h"
#include "sys/calls.h"
#include "warden/launch.h"
#include "warden/warden.h"

static const struct schema_field change_fields[] = {
    STRING(OPTIONAL, "reason", warden_change, reason),   STRING(OPTIONAL, "subject", warden_change, subject),
    STRING(OPTIONAL, "message", warden_change, message), STRING(OPTIONAL, "rule", warden_change, rule),
    STRING(OPTIONAL, "remedy", warden_change, remedy),
};
static const struct schema change_schema = SCHEMA("change", warden_change, change_fields);

static const struct schema_field plan_fields[] = {
    OBJECT(REQUIRED, "subject", warden_plan, subject, record_subject, record_subject_schema),
    STRING(OPTIONAL, "policyOrigin", warden_plan, policy_origin),
    INT64(REQUIRED, "initPid", warden_plan, init_pid),
    POINTER(OPTIONAL, "denied", warden_plan, denied, oci_seccomp, oci_seccomp_schema),
    POINTER(OPTIONAL, "observed", warden_plan, observed, oci_seccomp, oci_seccomp_schema),
    STRINGS(OPTIONAL, "decoys", warden_plan, decoys),
    OBJECTS(OPTIONAL, "changes", warden_plan, changes, warden_change, change_schema),
};
const struct schema warden_plan_schema = SCHEMA("warden plan", warden_plan, plan_fields);

static struct error *plan_seal(const struct warden_plan *plan, int *out) {
    json_owned struct json_writer json = {0};
    schema_write(&warden_plan_schema, plan, &json);
    fd_owned int memory = memfd_create("pinfold-plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return error_system(errno, "memfd_create", "the warden's plan");
    TRY(fd_write_all(memory, text_string(&json.text), json.text.length, "the warden's plan"));
    if (fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return error_system(errno, "seal", "the warden's plan");
    if (lseek(memory, 0, SEEK_SET) < 0)
        return error_system(errno, "rewind", "the warden's plan");
    *out = fd_take(&memory);
    return NULL;
}

/* In the child: descriptors to their fixed numbers, nothing else open, no signal blocked or ignored. */
static int child_run(void *data) {
    const int *descriptors = data;
    int high[WARDEN_FD_COUNT];
    for (int i = 0; i < WARDEN_FD_COUNT; i++) {
        high[i] = fcntl(descriptors[i], F_DUPFD_CLOEXEC, 64);
        if (high[i] < 0)
            _exit(127);
    }
    int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_device < 0)
        _exit(127);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (dup2(null_device, fd) < 0)
            _exit(127);
    for (int i = 0; i < WARDEN_FD_COUNT; i++)
        if (dup2(high[i], WARDEN_FD_FIRST + i) < 0)
            _exit(127);
    if (sys_close_range(WARDEN_FD_FIRST + WARDEN_FD_COUNT, ~0u, 0) < 0)
        _exit(127);
    /* What the engine blocked or ignored is not for us (a hook-started process once could not be ended by
     * SIGTERM). */
    sys_signals_reset();
    if (setsid() < 0 || chdir("/") < 0)
        _exit(127);
    static char *const arguments[] = {"pinfold", "warden", NULL};
    static char *const environment[] = {NULL};
    execve("/proc/self/exe", arguments, environment);
    _exit(127);
}

struct error *warden_spawn(const struct warden_plan *plan, int init_channel, int listening, int init_pidfd,
                           pid_t *pid) {
    fd_owned int sealed = -1;
    TRY(plan_seal(plan, &sealed));
    int descriptors[WARDEN_FD_COUNT] = {sealed, init_channel, listening, init_pidfd};
    fd_owned int pidfd = -1;
    *pid = sys_spawn(child_run, descriptors, &pidfd);
    if (*pid < 0)
        return error_system(errno, "fork", "the warden");
    return NULL;
}
