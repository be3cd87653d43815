/* A clock as a number. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Milliseconds of CLOCK_MONOTONIC (durations, deadlines), CLOCK_REALTIME (what a record says) or
 * CLOCK_BOOTTIME (goes on while the machine sleeps, as the wall clock does). Allocates nothing. */
int64_t clock_ms(clockid_t clock);
