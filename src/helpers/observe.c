/* pinfold-observe: loads the program of the file observer, attaches it and pins it with its maps, in the
 * directory that is its standard input: a bpffs that only root may enter. Started by the runtime with an
 * empty environment, under a lock, when there is none yet. Answers with its exit status and, on its standard
 * error, a sentence. Dynamic, because libbpf is. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/observe_event.h"

#define VMLINUX "/sys/kernel/btf/vmlinux"
#define VMLINUX_BYTES_MAX (64 << 20)

static _Noreturn void fail(int number, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, ": %s\n", strerror(number));
    exit(1);
}

/* --- where the kernel keeps things --- */

/* The kernel's types, read in one pass over the raw BTF: libbpf's own reading takes 100 ms and 13 MB. */
struct types {
    const char *strings;
    size_t strings_length;
    const struct btf_type **items; /* by number; [0] is void */
    size_t count, room;
};

static size_t size_of(const struct btf_type *type) {
    const size_t length = BTF_INFO_VLEN(type->info);
    size_t more = 0;
    switch (BTF_INFO_KIND(type->info)) {
    case BTF_KIND_INT:
        more = sizeof(__u32);
        break;
    case BTF_KIND_ARRAY:
        more = sizeof(struct btf_array);
        break;
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
        more = length * sizeof(struct btf_member);
        break;
    case BTF_KIND_ENUM:
        more = length * sizeof(struct btf_enum);
        break;
    case BTF_KIND_FUNC_PROTO:
        more = length * sizeof(struct btf_param);
        break;
    case BTF_KIND_VAR:
        more = sizeof(struct btf_var);
        break;
    case BTF_KIND_DATASEC:
        more = length * sizeof(struct btf_var_secinfo);
        break;
    case 17 /* DECL_TAG */:
        more = sizeof(__u32);
        break;
    case 19 /* ENUM64 */:
        more = length * 3 * sizeof(__u32);
        break;
    }
    return sizeof *type + more;
}

static void types_read(const char *bytes, size_t length, struct types *out) {
    const struct btf_header *header = (const void *)bytes;
    if (length < sizeof *header || header->magic != BTF_MAGIC ||
        (size_t)header->hdr_len + header->type_off + header->type_len > length ||
        (size_t)header->hdr_len + header->str_off + header->str_len > length || header->str_len == 0)
        fail(EINVAL, VMLINUX);
    out->strings = bytes + header->hdr_len + header->str_off;
    out->strings_length = header->str_len;
    const char *at = bytes + header->hdr_len + header->type_off, *end = at + header->type_len;
    out->count = 1;
    while (at + sizeof(struct btf_type) <= end) {
        const struct btf_type *type = (const void *)at;
        if (out->count >= out->room) {
            out->room = out->room == 0 ? 1 << 18 : out->room * 2;
            out->items = realloc(out->items, out->room * sizeof *out->items);
            if (out->items == NULL)
                fail(ENOMEM, VMLINUX);
            out->items[0] = NULL;
        }
        out->items[out->count++] = type;
        at += size_of(type);
    }
    if (at != end)
        fail(EINVAL, VMLINUX);
}

static const char *name_at(const struct types *types, __u32 offset) {
    return offset < types->strings_length ? types->strings + offset : "";
}

static const struct btf_type *type_at(const struct types *types, __u32 number) {
    while (number != 0 && number < types->count) {
        const struct btf_type *type = types->items[number];
        const __u32 kind = BTF_INFO_KIND(type->info);
        if (kind != BTF_KIND_TYPEDEF && kind != BTF_KIND_CONST && kind != BTF_KIND_VOLATILE &&
            kind != 18 /* TYPE_TAG */)
            return type;
        number = type->type;
    }
    return NULL;
}

static const struct btf_type *structure_find(const struct types *types, const char *name) {
    for (size_t i = 1; i < types->count; i++)
        if (BTF_INFO_KIND(types->items[i]->info) == BTF_KIND_STRUCT &&
            BTF_INFO_VLEN(types->items[i]->info) > 0 &&
            strcmp(name_at(types, types->items[i]->name_off), name) == 0)
            return types->items[i];
    fail(ENOENT, VMLINUX ": struct %s", name);
}

/* The member's offset in bytes, within unnamed structures too; -1. `type`: its own. */
static long member_find(const struct types *types, const struct btf_type *in, const char *name,
                        const struct btf_type **type) {
    const struct btf_member *members = (const void *)(in + 1);
    const bool fields = BTF_INFO_KFLAG(in->info);
    for (__u32 i = 0; i < BTF_INFO_VLEN(in->info); i++) {
        const __u32 bits = fields ? BTF_MEMBER_BIT_OFFSET(members[i].offset) : members[i].offset;
        const char *this = name_at(types, members[i].name_off);
        const struct btf_type *its = type_at(types, members[i].type);
        if (strcmp(this, name) == 0) {
            *type = its;
            return (long)(bits / 8);
        }
        if (this[0] != '\0' || its == NULL ||
            (BTF_INFO_KIND(its->info) != BTF_KIND_STRUCT && BTF_INFO_KIND(its->info) != BTF_KIND_UNION))
            continue;
        const long within = member_find(types, its, name, type);
        if (within >= 0)
            return (long)(bits / 8) + within;
    }
    return -1;
}

/* "struct.member.member" */
static __u32 offset_of(const struct types *types, const char *path) {
    char copy[128];
    snprintf(copy, sizeof copy, "%s", path);
    char *rest = copy;
    const struct btf_type *type = structure_find(types, strsep(&rest, "."));
    long offset = 0;
    while (rest != NULL) {
        const char *name = strsep(&rest, ".");
        const long within = type == NULL ? -1 : member_find(types, type, name, &type);
        if (within < 0)
            fail(ENOENT, VMLINUX ": %s", path);
        offset += within;
    }
    return (__u32)offset;
}

static void offsets_find(struct observe_offsets *out) {
    const int fd = open(VMLINUX, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        fail(errno, "open " VMLINUX);
    if (status.st_size <= 0 || status.st_size > VMLINUX_BYTES_MAX)
        fail(EFBIG, VMLINUX);
    char *bytes = malloc((size_t)status.st_size);
    size_t length = 0;
    while (bytes != NULL && length < (size_t)status.st_size) {
        const ssize_t part = read(fd, bytes + length, (size_t)status.st_size - length);
        if (part <= 0)
            fail(part < 0 ? errno : EPIPE, "read " VMLINUX);
        length += (size_t)part;
    }
    if (bytes == NULL)
        fail(ENOMEM, VMLINUX);
    close(fd);
    struct types types = {0};
    types_read(bytes, length, &types);
    *out = (struct observe_offsets){
        .task_pid = offset_of(&types, "task_struct.thread_pid"),
        .task_status = offset_of(&types, "task_struct.thread_info.status"),
        .pid_level = offset_of(&types, "pid.level"),
        .pid_numbers = offset_of(&types, "pid.numbers"),
        .number_size = structure_find(&types, "upid")->size,
        .number_nr = offset_of(&types, "upid.nr"),
        .number_space = offset_of(&types, "upid.ns"),
        .space_inode = offset_of(&types, "pid_namespace.ns.inum"),
    };
    free(types.items);
    free(bytes);
}

/* --- which calls are of files --- */

static const struct {
    const char *names;
    unsigned char what;
} watched[] = {
    {"open creat mkdir mknod unlink rmdir chmod chown lchown chown32 lchown32 utime utimes truncate "
     "truncate64 "
     "setxattr lsetxattr removexattr lremovexattr execve",
     OBSERVE_PATH_ARGUMENT(0, -1)},
    {"openat openat2 mkdirat mknodat unlinkat fchmodat fchmodat2 fchownat futimesat utimensat "
     "utimensat_time64 "
     "setxattrat removexattrat execveat",
     OBSERVE_PATH_ARGUMENT(1, -1)},
    {"rename link symlink", OBSERVE_PATH_ARGUMENT(0, 1)},
    {"renameat renameat2 linkat", OBSERVE_PATH_ARGUMENT(1, 3)},
    {"symlinkat", OBSERVE_PATH_ARGUMENT(0, 2)},
    {"fchmod fchown fchown32 ftruncate ftruncate64 fsetxattr fremovexattr fallocate", OBSERVE_WATCHED},
};

static void calls_fill(unsigned char calls[OBSERVE_ABIS][OBSERVE_CALLS]) {
    static const uint32_t abis[OBSERVE_ABIS] = {SCMP_ARCH_NATIVE, SCMP_ARCH_X86};
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        char names[512];
        snprintf(names, sizeof names, "%s", watched[i].names);
        for (char *rest = names, *name; (name = strsep(&rest, " ")) != NULL;)
            for (size_t abi = 0; abi < OBSERVE_ABIS; abi++) {
                const int number = seccomp_syscall_resolve_name_arch(abis[abi], name);
                if (number >= 0 && number < OBSERVE_CALLS)
                    calls[abi][number] = watched[i].what;
            }
    }
}

/* --- the program --- */

/* src/helpers/observe.bpf.c, compiled */
extern const char program_begin[], program_end[];
static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments) {
    return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

static void pin(int fd, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/0/%s", name);
    if (bpf_obj_pin(fd, path) < 0)
        fail(errno, "pin %s", name);
}

int main(void) {
    libbpf_set_print(say_nothing);
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_MEMLOCK, &all); /* counts before Linux 5.11 alone */
    const struct bpf_object_open_opts options = {.sz = sizeof options, .object_name = "pinfold"};
    struct bpf_object *object =
        bpf_object__open_mem(program_begin, (size_t)(program_end - program_begin), &options);
    if (object == NULL)
        fail(errno, "read the program");
    struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata");
    struct {
        struct observe_offsets offsets;
        unsigned char calls[OBSERVE_ABIS][OBSERVE_CALLS];
    } values = {0};
    size_t size = 0;
    if (constants == NULL || bpf_map__initial_value(constants, &size) == NULL || size != sizeof values)
        fail(EINVAL, "the program's constants (%zu bytes)", size);
    offsets_find(&values.offsets);
    calls_fill(values.calls);
    if (bpf_map__set_initial_value(constants, &values, sizeof values) != 0)
        fail(errno, "set the program's constants");
    if (bpf_object__load(object) != 0)
        fail(errno, "load the program");
    struct bpf_program *program = bpf_object__find_program_by_name(object, "denied");
    const int link = bpf_raw_tracepoint_open("sys_exit", bpf_program__fd(program));
    if (link < 0)
        fail(errno, "attach the program");
    /* The maps first: who finds the link finds all. */
    pin(bpf_object__find_map_fd_by_name(object, "rings"), "rings");
    pin(bpf_object__find_map_fd_by_name(object, "losses"), "losses");
    pin(link, "link");
    return 0;
}
