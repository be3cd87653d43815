/* blockIO: blkio of v1, io of v2. The weight's file depends on the scheduler that the kernel was built with.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/internal.h"

#define FIELD "linux.resources.blockIO."

bool cgroup_block_io_wanted(const struct oci_block_io *block_io) {
    return (block_io->weight.set && block_io->weight.value != 0) ||
           (block_io->leaf_weight.set && block_io->leaf_weight.value != 0) ||
           block_io->weight_device_count > 0 || block_io->throttle_read_bps_device_count > 0 ||
           block_io->throttle_write_bps_device_count > 0 || block_io->throttle_read_iops_device_count > 0 ||
           block_io->throttle_write_iops_device_count > 0;
}

static struct error *weight_check(const char *field, uint32_t weight) {
    if (weight < 10 || weight > 1000)
        return error_new(ERROR_INVALID, FIELD "%s: %" PRIu32 " is not allowed; 10 to 1000 is", field, weight);
    return NULL;
}

static struct error *block_write(const char *directory, const char *field, const char *file, char *value) {
    cgroup_settings_owned struct cgroup_settings settings = {0};
    cgroup_settings_add(&settings, field, "block I/O", file, value);
    return cgroup_settings_write(&settings, directory);
}

/* The first of the files that exists, or the last one, whose absence the write will report. */
static const char *first_existing(const char *directory, const char *const *files) {
    size_t i = 0;
    while (files[i + 1] != NULL && !cgroup_file_exists(directory, files[i]))
        i++;
    return files[i];
}

/* Each throttle list with its file of v1 and its key in io.max. */
struct throttle {
    const char *field;
    const char *v1_file;
    const char *v2_key;
    const struct oci_throttle_device *devices;
    size_t count;
};

static void throttles(const struct oci_block_io *block_io, struct throttle list[4]) {
    list[0] = (struct throttle){FIELD "throttleReadBpsDevice", "blkio.throttle.read_bps_device", "rbps",
                                block_io->throttle_read_bps_device, block_io->throttle_read_bps_device_count};
    list[1] =
        (struct throttle){FIELD "throttleWriteBpsDevice", "blkio.throttle.write_bps_device", "wbps",
                          block_io->throttle_write_bps_device, block_io->throttle_write_bps_device_count};
    list[2] =
        (struct throttle){FIELD "throttleReadIOPSDevice", "blkio.throttle.read_iops_device", "riops",
                          block_io->throttle_read_iops_device, block_io->throttle_read_iops_device_count};
    list[3] =
        (struct throttle){FIELD "throttleWriteIOPSDevice", "blkio.throttle.write_iops_device", "wiops",
                          block_io->throttle_write_iops_device, block_io->throttle_write_iops_device_count};
}

struct error *cgroup_v1_block_io(const char *directory, const struct oci_block_io *block_io) {
    static const char *const weight_files[] = {"blkio.weight", "blkio.bfq.weight", NULL};
    static const char *const weight_device_files[] = {"blkio.weight_device", "blkio.bfq.weight_device", NULL};
    if (block_io->weight.set && block_io->weight.value != 0) {
        TRY(weight_check("weight", block_io->weight.value));
        TRY(block_write(directory, FIELD "weight", first_existing(directory, weight_files),
                        text_formatted("%" PRIu32, block_io->weight.value)));
    }
    if (block_io->leaf_weight.set && block_io->leaf_weight.value != 0) {
        TRY(weight_check("leafWeight", block_io->leaf_weight.value));
        TRY(block_write(directory, FIELD "leafWeight", "blkio.leaf_weight",
                        text_formatted("%" PRIu32, block_io->leaf_weight.value)));
    }
    for (size_t i = 0; i < block_io->weight_device_count; i++) {
        const struct oci_weight_device *device = &block_io->weight_device[i];
        if (device->weight.set && device->weight.value != 0) {
            TRY(weight_check("weightDevice.weight", device->weight.value));
            TRY(block_write(directory, FIELD "weightDevice", first_existing(directory, weight_device_files),
                            text_formatted("%" PRId64 ":%" PRId64 " %" PRIu32, device->major, device->minor,
                                           device->weight.value)));
        }
        if (device->leaf_weight.set && device->leaf_weight.value != 0) {
            TRY(weight_check("weightDevice.leafWeight", device->leaf_weight.value));
            TRY(block_write(directory, FIELD "weightDevice", "blkio.leaf_weight_device",
                            text_formatted("%" PRId64 ":%" PRId64 " %" PRIu32, device->major, device->minor,
                                           device->leaf_weight.value)));
        }
    }
    struct throttle list[4];
    throttles(block_io, list);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < list[i].count; j++)
            TRY(block_write(directory, list[i].field, list[i].v1_file,
                            text_formatted("%" PRId64 ":%" PRId64 " %" PRIu64, list[i].devices[j].major,
                                           list[i].devices[j].minor, list[i].devices[j].rate)));
    return NULL;
}

struct error *cgroup_v2_block_io(const char *directory, const struct oci_block_io *block_io) {
    bool bfq = cgroup_file_exists(directory, "io.bfq.weight");
    const char *weight_file = bfq ? "io.bfq.weight" : "io.weight";
    if (block_io->leaf_weight.set && block_io->leaf_weight.value != 0)
        return error_new(ERROR_UNAVAILABLE, FIELD "leafWeight: cgroup v2 has no weight for leaves");
    if (block_io->weight.set && block_io->weight.value != 0) {
        TRY(weight_check("weight", block_io->weight.value));
        uint64_t weight = bfq ? block_io->weight.value : cgroup_io_weight(block_io->weight.value);
        TRY(block_write(directory, FIELD "weight", weight_file, text_formatted("%" PRIu64, weight)));
    }
    for (size_t i = 0; i < block_io->weight_device_count; i++) {
        const struct oci_weight_device *device = &block_io->weight_device[i];
        if (device->leaf_weight.set && device->leaf_weight.value != 0)
            return error_new(ERROR_UNAVAILABLE,
                             FIELD "weightDevice.leafWeight: cgroup v2 has no weight for leaves");
        if (!device->weight.set || device->weight.value == 0)
            continue;
        TRY(weight_check("weightDevice.weight", device->weight.value));
        uint64_t weight = bfq ? device->weight.value : cgroup_io_weight(device->weight.value);
        TRY(block_write(
            directory, FIELD "weightDevice", weight_file,
            text_formatted("%" PRId64 ":%" PRId64 " %" PRIu64, device->major, device->minor, weight)));
    }
    struct throttle list[4];
    throttles(block_io, list);
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < list[i].count; j++) {
            const struct oci_throttle_device *device = &list[i].devices[j];
            /* 0 takes a limit away, as it does in v1. */
            char *value = device->rate == 0
                              ? text_formatted("%" PRId64 ":%" PRId64 " %s=max", device->major, device->minor,
                                               list[i].v2_key)
                              : text_formatted("%" PRId64 ":%" PRId64 " %s=%" PRIu64, device->major,
                                               device->minor, list[i].v2_key, device->rate);
            TRY(block_write(directory, list[i].field, "io.max", value));
        }
    }
    return NULL;
}
