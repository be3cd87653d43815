/* /etc/pinfold/config.yaml: what annotations may do on this machine. */
#pragma once

#include "policy/files.h"

struct policy_settings {
    struct string_list selectable; /* policies that the annotation dev.pinfold.policy may choose */
    bool annotations_full;         /* annotations are known to come from the user alone, and may widen */
};

/* Reads config.yaml of the configuration directory; nothing is set where there is none. */
fallible policy_settings_read(const struct policy_places *places, struct policy_settings *out);
void policy_settings_clear(struct policy_settings *settings);
#define policy_settings_owned __attribute__((cleanup(policy_settings_clear)))
