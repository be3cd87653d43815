/* `pinfold log`: the records of a container, for people and for programs. */
#pragma once

#include "base/error.h"

/* Exit status of --exit-code when there is a denial. */
#define LOG_EXIT_DENIED 3

/* argv[0] is "log". *exit_status is 0, or with --exit-code LOG_EXIT_DENIED when a record that was shown is a
 * denial. Without --follow it ends at the end of the file; with it, with the record of the container's end.
 */
fallible log_command(int argc, char **argv, int *exit_status);
