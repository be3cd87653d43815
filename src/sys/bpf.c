#include "sys/bpf.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sys_bpf(enum bpf_cmd command, union bpf_attr *attributes) {
    return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static uint64_t address(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

int sys_bpf_device_load(const struct bpf_insn *instructions, size_t count, const char *name) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes); /* the kernel refuses anything in the bytes that it ignores */
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attributes.expected_attach_type = BPF_CGROUP_DEVICE;
    attributes.insns = address(instructions);
    attributes.insn_cnt = (uint32_t)count;
    attributes.license = address("Apache-2.0");
    memcpy(attributes.prog_name, name, strnlen(name, sizeof attributes.prog_name - 1));
    return sys_bpf(BPF_PROG_LOAD, &attributes);
}

static int attachment(enum bpf_cmd command, int cgroup, int program, uint32_t flags) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.target_fd = (uint32_t)cgroup;
    attributes.attach_bpf_fd = (uint32_t)program;
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = flags;
    return sys_bpf(command, &attributes);
}

int sys_bpf_device_attach(int cgroup, int program) {
    return attachment(BPF_PROG_ATTACH, cgroup, program, BPF_F_ALLOW_MULTI);
}

int sys_bpf_device_detach(int cgroup, int program) {
    return attachment(BPF_PROG_DETACH, cgroup, program, 0);
}

int sys_bpf_device_query(int cgroup, uint32_t *ids, uint32_t capacity) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.query.target_fd = (uint32_t)cgroup;
    attributes.query.attach_type = BPF_CGROUP_DEVICE;
    attributes.query.prog_ids = address(ids);
    attributes.query.prog_cnt = capacity;
    if (sys_bpf(BPF_PROG_QUERY, &attributes) < 0)
        return -1;
    return (int)attributes.query.prog_cnt;
}

int sys_bpf_program_open(uint32_t id) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_id = id;
    return sys_bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
}

int sys_bpf_program_info(int program, struct bpf_prog_info *info) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    memset(info, 0, sizeof *info);
    attributes.info.bpf_fd = (uint32_t)program;
    attributes.info.info = address(info);
    attributes.info.info_len = sizeof *info;
    return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes);
}

int sys_bpf_pinned_open(const char *path) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.pathname = address(path);
    return sys_bpf(BPF_OBJ_GET, &attributes);
}

int sys_bpf_map_create(enum bpf_map_type type, uint32_t key_size, uint32_t value_size, uint32_t entries,
                       uint32_t flags) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.map_type = type;
    attributes.key_size = key_size;
    attributes.value_size = value_size;
    attributes.max_entries = entries;
    attributes.map_flags = flags;
    return sys_bpf(BPF_MAP_CREATE, &attributes);
}

/* `value`: for BPF_MAP_GET_NEXT_KEY the next key, which has the same place. */
static int map_element(enum bpf_cmd command, int map, const void *key, const void *value) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.map_fd = (uint32_t)map;
    attributes.key = address(key);
    attributes.value = address(value);
    return sys_bpf(command, &attributes);
}

int sys_bpf_map_set(int map, const void *key, const void *value) {
    return map_element(BPF_MAP_UPDATE_ELEM, map, key, value);
}

int sys_bpf_map_remove(int map, const void *key) {
    return map_element(BPF_MAP_DELETE_ELEM, map, key, NULL);
}

int sys_bpf_map_next(int map, const void *key, void *next) {
    return map_element(BPF_MAP_GET_NEXT_KEY, map, key, next);
}
