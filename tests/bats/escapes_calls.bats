#!/usr/bin/env bats
# Escapes by system calls, from a container that its engine made with --privileged: with the calls' new forms, through the
# kernel's other doors, and with garbage where the kernel does not look.
load helpers
load escapes

setup() {
    setup_container
    command -v gcc >/dev/null || skip "no C compiler"
}
teardown() { teardown_container; }
prepare() { privileged; }

@test "escapes: mounts" {
    check_rows <<'ROWS'
mount_tmpfs         worked  EPERM  syscall.not_allowed:mount
mount_remount       worked  EPERM  syscall.not_allowed:mount
mount_bind          worked  EPERM  syscall.not_allowed:mount
umount_mask         worked  EPERM  syscall.not_allowed:umount2
mount_pivot         worked  EPERM  syscall.not_allowed:pivot_root
mount_open_tree     worked  EPERM  syscall.not_allowed:open_tree
mount_move          worked  EPERM  syscall.not_allowed:move_mount
mount_fsopen        worked  EPERM  syscall.not_allowed:fsopen
mount_fspick        worked  EPERM  syscall.not_allowed:fspick
mount_attributes    worked  EPERM  syscall.not_allowed:mount_setattr
ROWS
}

@test "escapes: namespaces" {
    check_rows <<'ROWS'
namespace_user          worked  EPERM   syscall.not_allowed:unshare
namespace_mount         worked  EPERM   syscall.not_allowed:unshare
namespace_network       worked  EPERM   syscall.not_allowed:unshare
namespace_many          worked  EPERM   syscall.not_allowed:unshare
namespace_clone         worked  EPERM   syscall.not_allowed:clone
namespace_clone3        worked  ENOSYS  -   # every thread of every program tries it first: denied without a record
namespace_join          worked  EPERM   syscall.not_allowed:setns
namespace_join_process  worked  EPERM   syscall.not_allowed:setns
ROWS
}

@test "escapes: the kernel" {
    check_rows <<'ROWS'
kernel_bpf            worked   EPERM  syscall.not_allowed:bpf
kernel_perf           worked   EPERM  syscall.not_allowed:perf_event_open
kernel_userfaultfd    worked   EPERM  syscall.not_allowed:userfaultfd
kernel_log            worked   EPERM  syscall.not_allowed:syslog
kernel_kexec          reached  EPERM  syscall.not_allowed:kexec_load
kernel_reboot         reached  EPERM  syscall.not_allowed:reboot
kernel_module_load    reached  EPERM  syscall.not_allowed:finit_module
kernel_module_image   reached  EPERM  syscall.not_allowed:init_module
kernel_module_remove  reached  EPERM  syscall.not_allowed:delete_module
kernel_swap           reached  EPERM  syscall.not_allowed:swapon
kernel_accounting     reached  EPERM  syscall.not_allowed:acct
kernel_quota          reached  EPERM  syscall.not_allowed:quotactl
kernel_clock          worked   EPERM  syscall.not_allowed:settimeofday
kernel_clock_by_id    reached  EPERM  syscall.not_allowed:clock_settime
kernel_fanotify       worked   EPERM  syscall.not_allowed:fanotify_init
key_add               worked   EPERM  syscall.not_allowed:add_key
key_request           worked   EPERM  syscall.not_allowed:request_key
key_control           worked   EPERM  syscall.not_allowed:keyctl
ring_open             worked   ENOSYS syscall.not_allowed:io_uring_setup
ring_connect          worked   ENOSYS syscall.not_allowed:io_uring_setup
handle_open           worked   EPERM  syscall.not_allowed:open_by_handle_at
terminal_type         worked   EPERM  syscall.not_allowed:ioctl
terminal_type_upper_half  worked  EPERM  syscall.not_allowed:ioctl
terminal_paste        reached  EPERM  syscall.not_allowed:ioctl   # for a virtual console, which a test has not
filter_listener       worked   EBUSY  -   # what the kernel says itself where a listener lives
ROWS
}

@test "escapes: socket families" {
    # Without the policy the kernel's configuration decides about the others than packet and netlink.
    check_rows <<'ROWS'
family_packet      worked  EAFNOSUPPORT     syscall.not_allowed:socket
family_upper_half  worked  EAFNOSUPPORT     syscall.not_allowed:socket
family_diag        worked  EPROTONOSUPPORT  syscall.not_allowed:socket
family_netfilter   -       EPROTONOSUPPORT  syscall.not_allowed:socket
family_vsock       -       EAFNOSUPPORT     syscall.not_allowed:socket
family_alg         -       EAFNOSUPPORT     syscall.not_allowed:socket
family_xdp         -       EAFNOSUPPORT     syscall.not_allowed:socket
family_key         -       EAFNOSUPPORT     syscall.not_allowed:socket
family_bluetooth   -       EAFNOSUPPORT     syscall.not_allowed:socket
family_audit       -       EINVAL           -   # login programs try it at every start
ROWS
}

@test "escapes: 32-bit system calls" {
    [ "$(uname -m)" = x86_64 ] || skip "only x86_64 has them"
    # Whether the kernel has these doors (CONFIG_IA32_EMULATION, CONFIG_X86_X32) cannot be told beforehand.
    check_rows <<'ROWS'
door_32_mount       -  EPERM/signal-11  syscall.not_allowed:mount
door_32_socketcall  -  ENOSYS/signal-11  syscall.not_allowed:socketcall
door_32_socket      -  EAFNOSUPPORT/signal-11  syscall.not_allowed:socket
door_32_keyctl      -  EPERM/signal-11  syscall.not_allowed:keyctl
door_x32_mount      -  EPERM         syscall.not_allowed:mount
ROWS
}
