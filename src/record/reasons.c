#include "record/reasons.h"

#include <string.h>

/* tests/update-reasons writes the table of docs/log.md from this one. */
static const struct record_reason reasons[] = {
    {"fs.write.read_only",
     "something tried to write, create, remove, rename or change a file on a read-only place"},
    {"fs.read.not_granted", "something was opened for reading, listed or executed that `filesystem.readable` "
                            "does not name. Only where a policy says less than everything"},
    {"fs.permission.denied", "the file's owner and mode, or a directory's above it, did not let a process do "
                             "that: the same as without "
                             "a sandbox. Not the policy's, so `on_denied_action: stop` does not stop for it"},
    {"fs.decoy.opened",
     "a fake key was opened. Root: denied. An ordinary user's sandbox: observed, and what was read is fake"},
    {"credential.env.removed", "a variable that holds a secret was taken out, or one that makes programs run "
                               "other code (`processes.loader_variables: false`); the object is its name"},
    {"credential.mount.removed",
     "a mount that the engine adds by itself (service account token, mounts.conf secrets) was taken out"},
    {"mount.credential.refused", "a mount of a credential was asked for: `create` failed"},
    {"mount.socket.refused",
     "a mount of a control socket was asked for: `create` failed; inside a mounted directory it is covered"},
    {"mount.host_path.refused", "a mount of a host place was asked for: `create` failed"},
    {"capability.dropped", "capabilities beyond the policy's were dropped, at `create` or `exec`"},
    {"capability.refused", "under the stand-alone hook: the engine gave the container a capability with "
                           "which it could take the wall down or pass by it; the container failed"},
    {"device.removed", "devices beyond the standard ones were taken out"},
    {"policy.refused", "what was asked for cannot be had under the policy, for a reason that has no code of "
                       "its own: `create` or `update` failed, and the message says why"},
    {"policy.ceiling.exceeded", "the policy asks for more than `/etc/pinfold/ceiling.yaml` allows: `create` "
                                "failed, and the message names both lines"},
    {"policy.file.writable",
     "the policy's own file lies in a place that the sandbox may write to: `create` failed"},
    {"policy.glob.too_wide", "a pattern of the policy matches more places than are looked at: `create` "
                             "failed, and the message names it"},
    {"policy.annotation.ignored",
     "an annotation that only widens was left out: the groups of the caller, a property of the systemd unit "
     "(it could come from the image); or a project's `.pinfold.yaml` was, that was not trusted: `message` "
     "has the command"},
    {"namespace.added", "a namespace that the engine did not ask for was added (observed)"},
    {"namespace.host.refused", "a namespace of the host was asked for: `create` failed"},
    {"syscall.not_allowed", "a system call that a sandbox has no use for; the activity name is the call"},
    {"net.address.literal", "a connection to an address"},
    {"net.address.private", "a connection to a private, loopback or link-local address beyond the container"},
    {"net.address.metadata", "a connection to a cloud's metadata service"},
    {"net.protocol.not_allowed", "something else than TCP: UDP, ICMP, ..."},
    {"net.namespace.shared",
     "the network namespace belongs to a container with another policy: `create` failed"},
    {"dns.name.not_allowed", "a name was asked for; nothing was sent"},
    {"net.host.not_allowed",
     "a connection to a synthetic address of a name that is not allowed, or is no longer"},
    {"net.port.not_allowed", "a connection to a name that is allowed with other ports"},
    {"net.inbound.not_allowed", "something outside dialled the container, which has `network.inbound: deny`; "
                                "the process is the one that listens there"},
    {"net.sni.mismatch",
     "a TLS connection to an allowed name that names another server, or none: refused with an alert"},
    {"net.http.host_mismatch", "an HTTP request for another host than the connection's: answered with 403"},
    {"limit.connections", "more connections, or more names below a `*.` line, than the broker has room for"},
    {"net.connection.opened",
     "a connection to an allowed host (allowed); `firewall_rule` is the line that allows it. With "
     "`network.mode: open` the first packet of any flow that leaves"},
    {"net.connection.closed", "its end, with the bytes of both ways under `traffic`, and its duration; the "
                              "message says where another policy has ended it"},
    {"net.connection.failed", "the host is allowed, and could not be reached (allowed)"},
    {"broker.lost",
     "the broker died; another one serves, or the sandbox has no network from here on (observed)"},
    {"mechanism.unavailable",
     "a built-in second layer or default limit cannot be had on this machine (observed)"},
    {"mechanism.degraded", "a mechanism is there, and can do less than it should (observed)"},
    {"warden.lost", "the warden or its guardian died; the container was stopped"},
    {"log.suppressed", "carries counts that no other record could carry"},
    {"log.lost", "records could not be written (the disk was full), or the log was removed while its "
                 "container ran: the message says how many or up to which sequence, and why (observed)"},
    {"log.replaced", "something that is no log of this user's was in the log's place: it was given another "
                     "name, untouched, and a new log was begun (observed)"},
    {"log.removed", "the oldest piece of the container's own log was removed, because it has reached its "
                    "share of `log.total` (observed)"},
    {"log.clock.changed", "the machine's clock was set: times before and after this record do not compare, "
                          "sequences do (observed)"},
    {"log.sink.failed", "one of the places that records go to did not take all of them: the message says "
                        "which, how many, and where they are (observed)"},
    {"process.launched", "a program was run (observed): `process` is the one, with `working_directory` and "
                         "`parent_process`, which is the actor"},
    {"process.ended", "and has ended (observed): `exit_code`, from `process.created_time` to "
                      "`terminated_time`; after a signal 128 and its number, which is `unmapped.signal`"},
    {"policy.applied", "a policy came into force: at `create`, and anew by `update --policy`, where "
                       "`unmapped.previous_policy_digest` is that of the policy until then (observed)"},
    {"container.created", "the container was made (observed)"},
    {"container.started", "its program runs (observed)"},
    {"container.ended", "its init ended; `unmapped.exit_code` says how (observed)"},
};

const struct record_reason *record_reasons(size_t *count) {
    *count = sizeof reasons / sizeof reasons[0];
    return reasons;
}

/* Where `code` stands as a part of its own: at the beginning or after ": ", and before ": ". */
static const char *part_of(const char *message, const char *code) {
    size_t length = strlen(code);
    for (const char *at = message; (at = strstr(at, code)) != NULL; at += length)
        if ((at == message || (at >= message + 2 && at[-1] == ' ' && at[-2] == ':')) && at[length] == ':')
            return at;
    return NULL;
}

const char *record_reason_of(const char *message) {
    const char *first = NULL, *found = "policy.refused";
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        const char *at = part_of(message, reasons[i].code);
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            found = reasons[i].code;
        }
    }
    return found;
}
