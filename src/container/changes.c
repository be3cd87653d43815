#include "container/changes.h"

#include "warden/warden.h"

struct error *changes_record(int directory, const char *exec_id, const struct hardened *hardened,
                             int *channel) {
    for (size_t i = 0; i < hardened->changes_count; i++) {
        const struct change *change = &hardened->changes[i];
        if (change->reason == NULL)
            continue;
        if (*channel < 0)
            TRY(warden_connect(directory, channel));
        struct warden_change record = {.reason = change->reason,
                                       .subject = change->subject,
                                       .message = change->message,
                                       .rule = change->rule,
                                       .remedy = change->remedy};
        TRY(warden_give_change(*channel, exec_id, &record));
    }
    return NULL;
}
