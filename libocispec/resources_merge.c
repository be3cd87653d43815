/* What an update changes in the stored resources. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "libocispec/config.h"
#include "libocispec/schema_internal.h"

/* Lists of limits, each for one thing that is told by its key: an entry of `over` takes the place of the one
 * with its key. */
#define MERGE_BY(base, over, list, same_key)                                                                 \
    do {                                                                                                     \
        for (size_t i = 0; i < (over)->list##_count; i++) {                                                  \
            size_t at = 0;                                                                                   \
            while (at < (base)->list##_count && !(same_key(&(base)->list[at], &(over)->list[i])))            \
                at++;                                                                                        \
            if (at == (base)->list##_count)                                                                  \
                (base)->list = memory_resize((base)->list, ++(base)->list##_count, sizeof *(base)->list);    \
            (base)->list[at] = (over)->list[i];                                                              \
        }                                                                                                    \
    } while (0)

#define SAME_DEVICE(a, b) ((a)->major == (b)->major && (a)->minor == (b)->minor)

static void block_io_merge(struct oci_block_io *base, const struct oci_block_io *over) {
    if (over->weight.set)
        base->weight = over->weight;
    if (over->leaf_weight.set)
        base->leaf_weight = over->leaf_weight;
    MERGE_BY(base, over, weight_device, SAME_DEVICE);
    MERGE_BY(base, over, throttle_read_bps_device, SAME_DEVICE);
    MERGE_BY(base, over, throttle_write_bps_device, SAME_DEVICE);
    MERGE_BY(base, over, throttle_read_iops_device, SAME_DEVICE);
    MERGE_BY(base, over, throttle_write_iops_device, SAME_DEVICE);
}

static void hugepages_merge(struct oci_resources *base, const struct oci_resources *over) {
    for (size_t i = 0; i < over->hugepage_limits_count; i++) {
        size_t at = 0;
        while (at < base->hugepage_limits_count &&
               strcmp(base->hugepage_limits[at].page_size, over->hugepage_limits[i].page_size) != 0)
            at++;
        if (at == base->hugepage_limits_count) {
            base->hugepage_limits = memory_resize(base->hugepage_limits, ++base->hugepage_limits_count,
                                                  sizeof *base->hugepage_limits);
            base->hugepage_limits[at].page_size = memory_copy_string(over->hugepage_limits[i].page_size);
        }
        base->hugepage_limits[at].limit = over->hugepage_limits[i].limit;
    }
}

static void rdma_merge(struct oci_resources *base, const struct oci_resources *over) {
    for (size_t i = 0; i < over->rdma_count; i++) {
        size_t at = 0;
        while (at < base->rdma_count && strcmp(base->rdma[at].device, over->rdma[i].device) != 0)
            at++;
        if (at == base->rdma_count) {
            base->rdma = memory_resize(base->rdma, ++base->rdma_count, sizeof *base->rdma);
            base->rdma[at] = (struct oci_rdma){.device = memory_copy_string(over->rdma[i].device)};
        }
        if (over->rdma[i].hca_handles.set)
            base->rdma[at].hca_handles = over->rdma[i].hca_handles;
        if (over->rdma[i].hca_objects.set)
            base->rdma[at].hca_objects = over->rdma[i].hca_objects;
    }
}

void oci_resources_merge(struct oci_resources *base, const struct oci_resources *over) {
    /* The lists with keys apart; everything else by the table. */
    struct oci_resources rest = *over;
    rest.block_io = NULL;
    rest.hugepage_limits_count = 0;
    rest.rdma_count = 0;
    schema_merge(&oci_resources_schema, base, &rest);
    if (over->block_io != NULL) {
        if (base->block_io == NULL)
            base->block_io = memory_zeroed(sizeof *base->block_io);
        block_io_merge(base->block_io, over->block_io);
    }
    hugepages_merge(base, over);
    rdma_merge(base, over);
}
