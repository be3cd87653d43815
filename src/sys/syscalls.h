/* Names and numbers of system calls in each ABI of this machine, also of those that are newer than the
 * libseccomp that pinfold was built with. */
#pragma once

#include <stdint.h>

/* The number of a call that every architecture has under the same number (all since Linux 5.1: 424 and up)
 * and that libseccomp may be too old to know; -1 for every other name. */
int syscall_number_recent(const char *name);

/* The name of call `number` in the ABI of `audit_arch` (seccomp_data.arch; the x32 bit in the number is
 * honoured). Written into `name`, of `size` bytes; "" for an unknown number. */
void syscall_name(uint32_t audit_arch, int number, char *name, unsigned long size);
