/* The rules of `network.mode: open`: everything goes out, and the first packet of each flow is logged. */
#pragma once

#include "egress/rules.h"

/* Puts chains and rules into an empty plan. */
void observing_rules(struct wall_plan *plan);
