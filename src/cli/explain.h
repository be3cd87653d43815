/* `pinfold explain`: what holds for a container, or would, and why; without running anything. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "container/enforcement.h"

/* For a person (safe for a terminal), or as one JSON object. */
void explain_print(const struct enforcement *enforcement, bool json, FILE *out);
