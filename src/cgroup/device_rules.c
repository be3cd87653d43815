/* The rules of linux.resources.devices, as v1 and v2 both read them. */
#include <inttypes.h>
#include <string.h>

#include "cgroup/internal.h"

/* A node may be made for anything, which gives nothing while it cannot be opened. /dev/console is 5:1 only
 * outside: inside it is a pts. */
const struct cgroup_device_rule cgroup_device_standard[] = {
    {true, 'c', -1, -1, CGROUP_DEVICE_MKNOD}, {true, 'b', -1, -1, CGROUP_DEVICE_MKNOD},
    {true, 'c', 1, 3, CGROUP_DEVICE_ALL},    /* null */
    {true, 'c', 1, 5, CGROUP_DEVICE_ALL},    /* zero */
    {true, 'c', 1, 7, CGROUP_DEVICE_ALL},    /* full */
    {true, 'c', 1, 8, CGROUP_DEVICE_ALL},    /* random */
    {true, 'c', 1, 9, CGROUP_DEVICE_ALL},    /* urandom */
    {true, 'c', 5, 0, CGROUP_DEVICE_ALL},    /* tty */
    {true, 'c', 5, 2, CGROUP_DEVICE_ALL},    /* ptmx */
    {true, 'c', 136, -1, CGROUP_DEVICE_ALL}, /* pts */
};
const size_t cgroup_device_standard_count = sizeof cgroup_device_standard / sizeof *cgroup_device_standard;

static bool access_parse(const char *text, unsigned *access) {
    static const char letters[] = "rwm"; /* in the order of the bits */
    *access = 0;
    if (text == NULL || text[0] == '\0')
        *access = CGROUP_DEVICE_ALL;
    for (; text != NULL && *text != '\0'; text++) {
        const char *letter = strchr(letters, *text);
        if (letter == NULL)
            return false;
        *access |= 1u << (letter - letters);
    }
    return true;
}

bool cgroup_device_rule_covers_all(const struct cgroup_device_rule *rule) {
    return rule->type == 'a' && rule->major == -1 && rule->minor == -1 && rule->access == CGROUP_DEVICE_ALL;
}

struct error *cgroup_device_rule_parse(const struct oci_device_cgroup *rule, size_t index,
                                       struct cgroup_device_rule *out) {
    const char *type = rule->type == NULL || rule->type[0] == '\0' ? "a" : rule->type;
    if (strlen(type) != 1 || strchr("abc", type[0]) == NULL)
        return error_new(ERROR_INVALID,
                         "linux.resources.devices[%zu].type: \"%s\" is not allowed; a, b or c is", index,
                         type);
    unsigned access;
    if (!access_parse(rule->access, &access))
        return error_new(ERROR_INVALID,
                         "linux.resources.devices[%zu].access: \"%s\" is not allowed; letters of rwm are",
                         index, rule->access);
    int64_t major = rule->major.set ? rule->major.value : -1;
    int64_t minor = rule->minor.set ? rule->minor.value : -1;
    if (major < -1 || minor < -1 || major > INT32_MAX || minor > INT32_MAX)
        return error_new(ERROR_INVALID,
                         "linux.resources.devices[%zu]: %" PRId64 ":%" PRId64
                         " is not allowed; device numbers, or -1 for any, are",
                         index, major, minor);
    *out = (struct cgroup_device_rule){
        .allow = rule->allow, .type = type[0], .major = major, .minor = minor, .access = access};
    return NULL;
}
