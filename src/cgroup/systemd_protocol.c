#include "cgroup/systemd_protocol.h"

#include "libocispec/schema_table.h"

static const struct schema_field property_fields[] = {
    STRING(REQUIRED, "name", systemd_property, name),
    STRING(REQUIRED, "type", systemd_property, type),
    STRINGS(OPTIONAL, "values", systemd_property, values),
};
static const struct schema property_schema = SCHEMA("property", systemd_property, property_fields);

static const struct schema_field properties_fields[] = {
    OBJECTS(OPTIONAL, "items", systemd_properties, items, systemd_property, property_schema),
};
static const struct schema properties_schema = SCHEMA("properties", systemd_properties, properties_fields);

static const struct schema_field request_fields[] = {
    STRING(REQUIRED, "operation", systemd_request, operation),
    STRINGS(REQUIRED, "addresses", systemd_request, addresses),
    STRING(REQUIRED, "unit", systemd_request, unit),
    STRING(OPTIONAL, "slice", systemd_request, slice),
    STRING(OPTIONAL, "description", systemd_request, description),
    UINT32(OPTIONAL, "pid", systemd_request, pid),
    OBJECT(OPTIONAL, "properties", systemd_request, properties, systemd_properties, properties_schema),
};
const struct schema systemd_request_schema = SCHEMA("systemd request", systemd_request, request_fields);

static const struct schema_field reply_fields[] = {
    STRING(OPTIONAL, "error", systemd_reply, error),
    STRING(OPTIONAL, "errorName", systemd_reply, error_name),
};
const struct schema systemd_reply_schema = SCHEMA("systemd reply", systemd_reply, reply_fields);

void systemd_properties_clear(struct systemd_properties *properties) {
    schema_clear(&properties_schema, properties);
    *properties = (struct systemd_properties){0};
}
