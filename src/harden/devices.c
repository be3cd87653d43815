#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"

#define DEVICES_RULE "built-in: standard devices"
#define NAMES_MAX 8

/* config-linux.md, "Default Devices": all that a container gets. */
bool harden_device_is_standard(char type, unsigned major, unsigned minor) {
    if (type != 'c' && type != 'u')
        return false;
    switch (major) {
    case 1: /* null, zero, full, random, urandom */
        return minor == 3 || minor == 5 || minor == 7 || minor == 8 || minor == 9;
    case 5: /* tty, console, ptmx */
        return minor <= 2;
    default:
        return major >= 136 && major <= 143; /* pseudo-terminals */
    }
}

/* Documentation/admin-guide/devices.txt: 195 is NVIDIA's, 226 the DRM's; what takes a number as it loads
 * (nvidia-uvm, kfd) gets one of the last two ranges. Memory, disks, KVM and FUSE have none of these. */
bool harden_device_is_gpu(const char *path, char type, int64_t major) {
    static const char *const names[] = {"/dev/nvidia", "/dev/dri/", "/dev/kfd"};
    bool number =
        major == 195 || major == 226 || (major >= 234 && major <= 254) || (major >= 384 && major <= 511);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (number && (type == 'c' || type == 'u') && text_starts_with(path, names[i]))
            return true;
    return false;
}

static bool is_standard(const struct oci_device *device) {
    if (device->type == NULL)
        return false;
    if (device->type[0] == 'p') /* A FIFO is no device. */
        return true;
    return device->major >= 0 && device->minor >= 0 && device->major <= 0xfff && device->minor <= 0xfffff &&
           harden_device_is_standard(device->type[0], (unsigned)device->major, (unsigned)device->minor);
}

static void append_name(struct text *names, const char *name) {
    text_format(names, "%s%s", names->length > 0 ? " " : "", name);
}

static void remove_devices(struct oci_linux *linux_config, const struct policy *policy, struct text *names,
                           size_t *removed) {
    size_t kept = 0;
    for (size_t i = 0; i < linux_config->devices_count; i++) {
        struct oci_device *device = &linux_config->devices[i];
        if (is_standard(device) ||
            (device->path != NULL && string_list_contains(&policy->credential_mounts.values, device->path)) ||
            (policy->gpu && device->path != NULL && device->type != NULL &&
             harden_device_is_gpu(device->path, device->type[0], device->major))) {
            linux_config->devices[kept++] = *device;
            continue;
        }
        /* --privileged brings hundreds: the first few say which. */
        if ((*removed)++ < NAMES_MAX)
            append_name(names, device->path != NULL ? device->path : "?");
        free(device->type);
        free(device->path);
    }
    linux_config->devices_count = kept;
}

/* An `allow` rule of the device cgroup that stays: a standard device, or mknod alone (engines allow it for
 * all; the capability for it is gone). */
static bool rule_stays(const struct oci_device_cgroup *rule, const struct oci_linux *linux_config) {
    if (!rule->allow)
        return true;
    if (rule->access != NULL && strcmp(rule->access, "m") == 0)
        return true;
    bool any = !rule->major.set || rule->major.value < 0;
    if (any || rule->type == NULL || rule->type[0] == 'a')
        return false;
    for (size_t i = 0; i < linux_config->devices_count; i++) /* what is left after remove_devices */
        if (rule->minor.set && linux_config->devices[i].major == rule->major.value &&
            linux_config->devices[i].minor == rule->minor.value &&
            linux_config->devices[i].type[0] == rule->type[0])
            return true;
    if (!rule->minor.set || rule->minor.value < 0)
        return rule->type[0] == 'c' && rule->major.value >= 136 && rule->major.value <= 143;
    return rule->major.value <= 0xfff && rule->minor.value <= 0xfffff &&
           harden_device_is_standard(rule->type[0], (unsigned)rule->major.value, (unsigned)rule->minor.value);
}

static bool denies_all(const struct oci_device_cgroup *rule) {
    return !rule->allow && (rule->type == NULL || rule->type[0] == 'a') &&
           (!rule->major.set || rule->major.value < 0) && (!rule->minor.set || rule->minor.value < 0);
}

/* The rule "deny all" goes first, so that what was taken out is denied and not merely no longer mentioned. */
static void deny_first(struct oci_resources *resources) {
    if (resources->devices_count > 0 && denies_all(&resources->devices[0]))
        return;
    resources->devices =
        memory_resize(resources->devices, resources->devices_count + 1, sizeof *resources->devices);
    memmove(resources->devices + 1, resources->devices,
            resources->devices_count * sizeof *resources->devices);
    resources->devices[0] = (struct oci_device_cgroup){.allow = false, .access = memory_copy_string("rwm")};
    resources->devices_count++;
}

static size_t remove_rules(struct oci_linux *linux_config) {
    struct oci_resources *resources = linux_config->resources;
    if (resources == NULL)
        return 0;
    size_t kept = 0;
    for (size_t i = 0; i < resources->devices_count; i++) {
        struct oci_device_cgroup *rule = &resources->devices[i];
        if (rule_stays(rule, linux_config)) {
            resources->devices[kept++] = *rule;
            continue;
        }
        free(rule->type);
        free(rule->access);
    }
    size_t removed = resources->devices_count - kept;
    resources->devices_count = kept;
    if (removed > 0)
        deny_first(resources);
    return removed;
}

void harden_devices(const struct policy *policy, struct hardened *hardened) {
    struct oci_linux *linux_config = harden_linux(hardened);
    text_owned struct text names = {0};
    size_t removed = 0;
    remove_devices(linux_config, policy, &names, &removed);
    size_t rules = remove_rules(linux_config);
    if (removed == 0 && rules == 0)
        return;
    if (removed == 0) {
        harden_note(hardened, CHANGE_REMOVED, "linux.resources.devices", "rules of the device cgroup",
                    "device.removed", DEVICES_RULE, NULL,
                    "only the standard devices may be opened; %zu rules of the device cgroup were taken out",
                    rules);
        return;
    }
    /* One line allows one device; nobody writes eight of them. */
    memory_owned char *remedy =
        removed == 1 ? harden_remedy("credentials", "mounts", text_string(&names)) : NULL;
    if (removed > NAMES_MAX)
        text_format(&names, " and %zu more", removed - NAMES_MAX);
    harden_note(hardened, CHANGE_REMOVED, "linux.devices", text_string(&names), "device.removed",
                DEVICES_RULE, remedy, "only the standard devices are given; %zu %s not", removed,
                removed == 1 ? "is" : "are");
}
