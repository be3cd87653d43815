/* network (net_cls and net_prio, which only v1 has) and rdma. */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "cgroup/internal.h"

static struct error *value_write(const struct cgroup_place *place, const char *field, const char *controller,
                                 const char *file, char *value) {
    cgroup_settings_owned struct cgroup_settings settings = {0};
    cgroup_settings_add(&settings, field, controller, file, value);
    return cgroup_settings_write(&settings, place->directory);
}

static struct error *need_v1(const struct cgroup *cgroup, const char *field, const char *controller,
                             struct cgroup_place *place) {
    if (cgroup->unified)
        return error_new(ERROR_UNAVAILABLE, "%s needs the %s controller of cgroup v1; cgroup v2 has none",
                         field, controller);
    return cgroup_place_need(cgroup, field, controller, place);
}

struct error *cgroup_apply_network(const struct cgroup *cgroup, const struct oci_network *network) {
    static const char class_field[] = "linux.resources.network.classID";
    static const char priorities_field[] = "linux.resources.network.priorities";
    struct cgroup_place place;
    if (network->class_id.set && network->class_id.value != 0) {
        TRY(need_v1(cgroup, class_field, "net_cls", &place));
        TRY(value_write(&place, class_field, "net_cls", "net_cls.classid",
                        text_formatted("%" PRIu32, network->class_id.value)));
    }
    for (size_t i = 0; i < network->priorities_count; i++) {
        const struct oci_interface_priority *priority = &network->priorities[i];
        TRY(need_v1(cgroup, priorities_field, "net_prio", &place));
        TRY(value_write(&place, priorities_field, "net_prio", "net_prio.ifpriomap",
                        text_formatted("%s %" PRIu32, priority->name, priority->priority)));
    }
    return NULL;
}

/* The kernel's own limit is an int; whatever is beyond it is no limit. */
static void rdma_limit_append(struct text *line, const char *key, struct optional_uint32 limit) {
    if (!limit.set)
        return;
    if (limit.value > INT32_MAX)
        text_format(line, " %s=max", key);
    else
        text_format(line, " %s=%" PRIu32, key, limit.value);
}

struct error *cgroup_apply_rdma(const struct cgroup *cgroup, const struct oci_rdma *devices, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!devices[i].hca_handles.set && !devices[i].hca_objects.set)
            continue;
        memory_owned char *field = text_formatted("linux.resources.rdma.%s", devices[i].device);
        struct cgroup_place place;
        TRY(cgroup_place_need(cgroup, field, "rdma", &place));
        struct text line = {0};
        text_append(&line, devices[i].device);
        rdma_limit_append(&line, "hca_handle", devices[i].hca_handles);
        rdma_limit_append(&line, "hca_object", devices[i].hca_objects);
        TRY(value_write(&place, field, "rdma", "rdma.max", text_take(&line)));
    }
    return NULL;
}
