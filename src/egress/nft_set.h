/* Sets of nf_tables whose elements are written: an address range with a port. (The sets that rules fill are
 * nft_set_add's.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "egress/nft.h"

/* A key is the address, then the port in four bytes, as the registers hold them. */
#define NFT_KEY_MAX 20

struct nft_range {
    uint8_t first[NFT_KEY_MAX], last[NFT_KEY_MAX];
};

/* The elements of one set. They are sorted and none covers another: what nf_tables takes (pipapo refuses
 * what overlaps), and what a dump can be compared with. */
struct nft_ranges {
    size_t address_length; /* 4 or 16 */
    /* Each element is one key, none an interval: a hash table, of which 1,000 are written in a quarter of the
     * time that as many intervals take. */
    bool keys;
    struct nft_range *items;
    size_t count;
};
void nft_ranges_free(struct nft_ranges *ranges);
/* Every address that has the first `prefix` bits of `address`, with one port. */
void nft_ranges_add(struct nft_ranges *ranges, const uint8_t *address, unsigned prefix, uint16_t port);
/* Puts them into the form that is written. */
void nft_ranges_complete(struct nft_ranges *ranges);

/* The set itself, of the kind that the elements need. `id` tells it from the other sets of the batch. */
void nft_range_set_add(struct netlink_batch *batch, uint8_t family, const char *table, const char *name,
                       const struct nft_ranges *ranges, uint32_t id);
/* Elements `from` to `from + count`, into a set of this batch or of the table. */
void nft_ranges_put(struct netlink_batch *batch, uint8_t family, const char *table, const char *name,
                    const struct nft_ranges *ranges, size_t from, size_t count);
/* Takes all elements out of it: with what is put in by the same batch, they are replaced at once. */
void nft_set_flush(struct netlink_batch *batch, uint8_t family, const char *table, const char *name);
/* Fails unless the set holds exactly these elements. */
fallible nft_ranges_compare(int socket, uint8_t family, const char *table, const char *name,
                            const struct nft_ranges *ranges);
