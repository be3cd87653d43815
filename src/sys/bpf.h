/* bpf(2) for programs of a cgroup's devices and for maps: no library, because a few commands are all that is
 * needed. Each returns -1 with errno on failure; every descriptor is close-on-exec (the kernel's rule for
 * bpf). */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor of the loaded program; `name` has at most 15 letters. */
int sys_bpf_device_load(const struct bpf_insn *instructions, size_t count, const char *name);
/* One more program for the cgroup: those that are there stay, and each may deny (BPF_F_ALLOW_MULTI). */
int sys_bpf_device_attach(int cgroup, int program);
int sys_bpf_device_detach(int cgroup, int program);
/* The ids of the programs of this very cgroup (not those above it): how many there are, at most `capacity` of
 * them in `ids`. */
int sys_bpf_device_query(int cgroup, uint32_t *ids, uint32_t capacity);
int sys_bpf_program_open(uint32_t id);
int sys_bpf_program_info(int program, struct bpf_prog_info *info);

/* What is pinned at `path`. */
int sys_bpf_pinned_open(const char *path);
int sys_bpf_map_create(enum bpf_map_type type, uint32_t key_size, uint32_t value_size, uint32_t entries,
                       uint32_t flags);
int sys_bpf_map_set(int map, const void *key, const void *value);
int sys_bpf_map_remove(int map, const void *key);
/* The key after `key`, or the first one for NULL; ENOENT: there is none. */
int sys_bpf_map_next(int map, const void *key, void *next);
