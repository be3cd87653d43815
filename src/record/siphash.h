/* SipHash-2-4 (Aumasson and Bernstein, 2012): keyed, so that a workload cannot choose objects that fall
 * together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *bytes, size_t length);
