#include <string.h>

#include "harden/parts.h"

/* Files of /proc and /sys that tell of the host or change it; engines mask them by default and leave them
 * open with
 * --privileged or --security-opt unmask. */
static const char *const masked[] = {"/proc/acpi",
                                     "/proc/kcore",
                                     "/proc/keys",
                                     "/proc/latency_stats",
                                     "/proc/timer_list",
                                     "/proc/timer_stats",
                                     "/proc/sched_debug",
                                     "/proc/scsi",
                                     "/sys/firmware",
                                     "/sys/fs/selinux",
                                     "/sys/dev/block",
                                     "/sys/devices/virtual/powercap",
                                     NULL};
static const char *const read_only[] = {"/proc/asound", "/proc/bus",           "/proc/fs", "/proc/irq",
                                        "/proc/sys",    "/proc/sysrq-trigger", NULL};

static void complete(struct hardened *hardened, const char *field, struct string_list *list,
                     const struct string_list *stronger, const char *const *paths, const char *what) {
    text_owned struct text added = {0};
    for (; *paths != NULL; paths++) {
        if (string_list_contains(list, *paths) ||
            (stronger != NULL && string_list_contains(stronger, *paths)))
            continue;
        string_list_append(list, *paths);
        text_format(&added, "%s%s", added.length > 0 ? " " : "", *paths);
    }
    if (added.length > 0)
        harden_note(hardened, CHANGE_ADDED, field, text_string(&added), NULL, "built-in: /proc masks", NULL,
                    "%s", what);
}

void harden_masks(struct hardened *hardened) {
    struct oci_linux *linux_config = harden_linux(hardened);
    complete(hardened, "linux.maskedPaths", &linux_config->masked_paths, NULL, masked,
             "files of the kernel that tell of the host are hidden");
    complete(hardened, "linux.readonlyPaths", &linux_config->readonly_paths, &linux_config->masked_paths,
             read_only, "settings of the kernel cannot be written");
}
