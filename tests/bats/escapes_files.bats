#!/usr/bin/env bats
# Escapes by files: changes to the root and to the kernel's settings by every call and by every name that a file has, keys
# where programs look for them, and what another process holds.
load helpers
load escapes

setup() {
    setup_container
    command -v gcc >/dev/null || skip "no C compiler"
}
teardown() { teardown_container; }

@test "escapes: the root file system" {
    prepare() { privileged; }
    check_rows <<'ROWS'
root_open                  worked  EROFS  fs.write.read_only
root_append                worked  EROFS  fs.write.read_only
root_create                worked  EROFS  fs.write.read_only
root_unlink                worked  EROFS  fs.write.read_only
root_rename                worked  EROFS  fs.write.read_only
root_mode                  worked  EROFS  fs.write.read_only
root_owner                 worked  EROFS  fs.write.read_only
root_symlink               worked  EROFS  fs.write.read_only
root_link                  worked  EROFS  fs.write.read_only
root_directory             worked  EROFS  fs.write.read_only
root_fifo                  worked  EROFS  fs.write.read_only
root_truncate              worked  EROFS  fs.write.read_only
root_attribute             worked  EROFS  fs.write.read_only
root_by_symlink            worked  EROFS  fs.write.read_only
root_by_descriptor         worked  EROFS  fs.write.read_only
root_by_path_descriptor    worked  EROFS  fs.write.read_only
root_by_proc               worked  EROFS  fs.write.read_only
root_by_other_process      worked  EROFS  fs.write.read_only
root_by_working_directory  worked  EROFS  fs.write.read_only
root_by_link_to_descriptor worked  EROFS  fs.write.read_only
root_create_by_proc        worked  EROFS  fs.write.read_only
ROWS
}

@test "escapes: the kernel's settings" {
    prepare() { privileged; }
    check_rows <<'ROWS'
kernel_core_pattern  worked  EROFS   fs.write.read_only
kernel_caches        worked  EROFS   fs.write.read_only
kernel_sysfs         worked  EROFS   fs.write.read_only
kernel_cgroup        worked  EROFS   fs.write.read_only
kernel_timers        worked  absent  -   # masked: an empty file is no denial
ROWS
}

@test "escapes: keys where programs look for them" {
    # What the image has there is hidden below the decoys. A name that leads away from a decoy leads to the decoy.
    prepare() {
        privileged
        mkdir -p "$ROOT/root/.ssh" "$ROOT/root/.aws"
        echo escape-marker-4711 | tee "$ROOT/root/.ssh/id_rsa" >"$ROOT/root/.aws/credentials"
        configure '.process.env += ["HOME=/root"]'
    }
    check_rows <<'ROWS'
key_read                 worked  EPERM  fs.decoy.opened
key_aws                  worked  EPERM  fs.decoy.opened
key_by_symlink           worked  EPERM  fs.decoy.opened
key_by_proc              worked  EPERM  fs.decoy.opened
key_by_directory         worked  EPERM  fs.decoy.opened
key_by_descriptor        worked  EPERM  fs.decoy.opened
key_by_directory_rename  worked  EPERM  fs.decoy.opened
key_by_rename            worked  EBUSY  -   # a decoy is a mount: nothing was opened
key_by_link              worked  EXDEV  -
ROWS
}

@test "escapes: other processes" {
    prepare() {
        privileged
        configure '.process.env += ["AGENT_TOKEN=escape-marker-4711"]'
    }
    check_rows <<'ROWS'
process_trace           worked  EPERM   syscall.not_allowed:ptrace
process_read            worked  EPERM   syscall.not_allowed:process_vm_readv
process_write           worked  EPERM   syscall.not_allowed:process_vm_writev
process_descriptor      worked  EPERM   syscall.not_allowed:pidfd_getfd
process_compare         worked  EPERM   syscall.not_allowed:kcmp
came_variable           worked  absent  any:credential.env.removed:AGENT_TOKEN
came_first_environment  worked  absent  any:credential.env.removed:AGENT_TOKEN
ROWS
}

@test "escapes: what the engine's --privileged gives to root" {
    prepare() { privileged; }
    check_rows <<'ROWS'
capability_chroot      worked  EPERM   any:capability.dropped:CAP_SYS_CHROOT
capability_disk        worked  EPERM/EACCES   any:capability.dropped:CAP_MKNOD
capability_raw_socket  worked  EPERM   any:capability.dropped:CAP_NET_RAW
capability_host_name   worked  EPERM   any:capability.dropped:CAP_SYS_ADMIN
capability_priority    worked  EACCES  any:capability.dropped:CAP_SYS_NICE
capability_interface   worked  EPERM   any:capability.dropped:CAP_NET_ADMIN
capability_mark        worked  EPERM   any:capability.dropped:CAP_NET_ADMIN
capability_kernel_log  worked  ENOENT  any:device.removed:/dev/kmsg
ROWS
}
