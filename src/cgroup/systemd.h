/* The systemd driver's parts. Nothing outside of cgroup/ includes it, except the unit tests. */
#pragma once

#include "cgroup/internal.h"
#include "cgroup/systemd_protocol.h"

/* ---- systemd_properties.c ---- */

void systemd_property_add(struct systemd_properties *properties, const char *name, const char *type,
                          const char *value);
/* The annotations org.systemd.property.NAME, in GVariant text; NAME may end in Sec, then the value is in
 * seconds and becomes NAME with USec. Names that the driver sets itself are ERROR_INVALID. */
fallible systemd_properties_from_annotations(const struct string_map *annotations,
                                             struct systemd_properties *properties);
/* What of the resources systemd can hold: so that it writes the same values when it writes the cgroup's files
 * again (daemon-reload). `directory`: the cgroup, where a quota or a period that is not given is read; NULL
 * before it exists. `devices`: also the device rules, where systemd can say them. */
fallible systemd_properties_from_resources(const struct oci_resources *resources, const char *directory,
                                           bool devices, struct systemd_properties *properties);
/* "0-2,8" as the bytes of a bit map, lowest first (runc #3808: not as a number), in decimal. */
fallible systemd_bitmap(const char *field, const char *list, struct string_list *bytes);

/* ---- systemd.c ---- */

/* Slice and unit of a cgroupsPath "slice:prefix:name"; NULL or "": the default slice and "pinfold-ID.scope".
 * The caller frees both. */
fallible systemd_names(const char *cgroups_path, const char *container_id, bool user_manager, char **slice,
                       char **unit);
/* "/machine.slice/machine-pod.slice" of "machine-pod.slice", "" of "-.slice". The caller frees it. */
char *systemd_slice_path(const char *slice);
fallible systemd_plan(const char *cgroups_path, const char *container_id, bool user_manager,
                      struct cgroup **out);
fallible systemd_attach(const struct cgroup *cgroup, pid_t pid);

/* ---- systemd_helper.c ---- */

/* Starts the helper, asks once, and waits for its end. A refusal of systemd's is ERROR_UNAVAILABLE with
 * systemd's own words; *error_name, which the caller frees, is then its D-Bus name, else NULL. */
fallible systemd_ask(const struct systemd_request *request, char **error_name);
/* Where systemd's manager can be reached: its private socket, which needs no message bus (runc #4853: a bus
 * with many containers starting answers late), then the bus. */
void systemd_addresses(bool user_manager, const char *runtime_directory, const char *bus_address,
                       struct string_list *addresses);
