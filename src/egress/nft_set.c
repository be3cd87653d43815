#include "egress/nft_set.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PORT_LENGTH 4 /* a register's worth, of which two bytes are the port */
/* The length of a list of elements is 16 bits wide, an element of IPv6 64 bytes long. */
#define ELEMENTS_A_MESSAGE 512
/* Numbers of nft(8), which shows elements by them: ipv4_addr, ipv6_addr, inet_service, and how it packs two.
 */
#define TYPE_IPV4 7
#define TYPE_IPV6 8
#define TYPE_PORT 13
#define TYPE_BITS 6

static size_t key_length(const struct nft_ranges *ranges) {
    return ranges->address_length + PORT_LENGTH;
}

void nft_ranges_free(struct nft_ranges *ranges) {
    free(ranges->items);
    *ranges = (struct nft_ranges){0};
}

void nft_ranges_add(struct nft_ranges *ranges, const uint8_t *address, unsigned prefix, uint16_t port) {
    if ((ranges->count & (ranges->count - 1)) == 0) /* grows by doubling */
        ranges->items =
            memory_resize(ranges->items, ranges->count == 0 ? 1 : ranges->count * 2, sizeof *ranges->items);
    struct nft_range *range = &ranges->items[ranges->count++];
    *range = (struct nft_range){0};
    for (size_t i = 0; i < ranges->address_length; i++) {
        unsigned bits = prefix > 8 * i ? prefix - 8 * (unsigned)i : 0;
        uint8_t mask = bits >= 8 ? 0xff : (uint8_t)(0xff00u >> bits);
        range->first[i] = address[i] & mask;
        range->last[i] = (uint8_t)(address[i] | ~mask);
    }
    uint16_t ordered = htons(port);
    memcpy(range->first + ranges->address_length, &ordered, sizeof ordered);
    memcpy(range->last + ranges->address_length, &ordered, sizeof ordered);
}

/* By port, then by address, a wider range before what it covers. */
static int range_order(const void *one, const void *other, void *data) {
    const struct nft_range *a = one, *b = other;
    const struct nft_ranges *ranges = data;
    size_t length = ranges->address_length;
    int order = memcmp(a->first + length, b->first + length, PORT_LENGTH);
    if (order == 0)
        order = memcmp(a->first, b->first, length);
    return order != 0 ? order : memcmp(b->last, a->last, length);
}

void nft_ranges_complete(struct nft_ranges *ranges) {
    size_t kept = 0, length = ranges->address_length;
    if (ranges->count == 0)
        return;
    qsort_r(ranges->items, ranges->count, sizeof *ranges->items, range_order, ranges);
    for (size_t i = 0; i < ranges->count; i++) {
        const struct nft_range *range = &ranges->items[i], *last = &ranges->items[kept > 0 ? kept - 1 : 0];
        /* Ranges of prefixes nest, or have nothing in common. */
        bool covered = kept > 0 && memcmp(last->first + length, range->first + length, PORT_LENGTH) == 0 &&
                       memcmp(range->last, last->last, length) <= 0;
        if (!covered)
            ranges->items[kept++] = *range;
    }
    ranges->count = kept;
}

static void message_begin(struct netlink_batch *batch, uint16_t type, uint16_t flags, uint8_t family,
                          const char *what, const char *name) {
    struct nfgenmsg header = {.nfgen_family = family, .version = NFNETLINK_V0};
    netlink_message_begin(batch, (NFNL_SUBSYS_NFTABLES << 8) | type, flags, &header, sizeof header, "%s %s",
                          what, name);
}

void nft_range_set_add(struct netlink_batch *batch, uint8_t family, const char *table, const char *name,
                       const struct nft_ranges *ranges, uint32_t id) {
    const uint32_t fields[] = {(uint32_t)ranges->address_length, sizeof(uint16_t)};
    message_begin(batch, NFT_MSG_NEWSET, NLM_F_CREATE, family, "set", name);
    netlink_put_string(batch, NFTA_SET_TABLE, table);
    netlink_put_string(batch, NFTA_SET_NAME, name);
    netlink_put_be32(batch, NFTA_SET_FLAGS, ranges->keys ? 0 : NFT_SET_INTERVAL | NFT_SET_CONCAT);
    netlink_put_be32(batch, NFTA_SET_KEY_TYPE,
                     (ranges->address_length == 4 ? TYPE_IPV4 : TYPE_IPV6) << TYPE_BITS | TYPE_PORT);
    netlink_put_be32(batch, NFTA_SET_KEY_LEN, (uint32_t)key_length(ranges));
    netlink_put_be32(batch, NFTA_SET_ID, id);
    if (ranges->keys) {
        netlink_message_end(batch);
        return;
    }
    size_t description = netlink_nest_begin(batch, NFTA_SET_DESC);
    size_t concatenation = netlink_nest_begin(batch, NFTA_SET_DESC_CONCAT);
    for (size_t i = 0; i < 2; i++) {
        size_t field = netlink_nest_begin(batch, NFTA_LIST_ELEM);
        netlink_put_be32(batch, NFTA_SET_FIELD_LEN, fields[i]);
        netlink_nest_end(batch, field);
    }
    netlink_nest_end(batch, concatenation);
    netlink_nest_end(batch, description);
    netlink_message_end(batch);
}

static void put_key(struct netlink_batch *batch, uint16_t type, const uint8_t *key, size_t length) {
    size_t nest = netlink_nest_begin(batch, type);
    netlink_put(batch, NFTA_DATA_VALUE, key, length);
    netlink_nest_end(batch, nest);
}

void nft_ranges_put(struct netlink_batch *batch, uint8_t family, const char *table, const char *name,
                    const struct nft_ranges *ranges, size_t from, size_t count) {
    for (size_t end = from + count; from < end;) {
        size_t message_end = end - from > ELEMENTS_A_MESSAGE ? from + ELEMENTS_A_MESSAGE : end;
        message_begin(batch, NFT_MSG_NEWSETELEM, NLM_F_CREATE, family, "elements of set", name);
        netlink_put_string(batch, NFTA_SET_ELEM_LIST_TABLE, table);
        netlink_put_string(batch, NFTA_SET_ELEM_LIST_SET, name);
        size_t list = netlink_nest_begin(batch, NFTA_SET_ELEM_LIST_ELEMENTS);
        for (; from < message_end; from++) {
            size_t element = netlink_nest_begin(batch, NFTA_LIST_ELEM);
            put_key(batch, NFTA_SET_ELEM_KEY, ranges->items[from].first, key_length(ranges));
            if (!ranges->keys)
                put_key(batch, NFTA_SET_ELEM_KEY_END, ranges->items[from].last, key_length(ranges));
            netlink_nest_end(batch, element);
        }
        netlink_nest_end(batch, list);
        netlink_message_end(batch);
    }
}

void nft_set_flush(struct netlink_batch *batch, uint8_t family, const char *table, const char *name) {
    message_begin(batch, NFT_MSG_DELSETELEM, 0, family, "elements of set", name);
    netlink_put_string(batch, NFTA_SET_ELEM_LIST_TABLE, table);
    netlink_put_string(batch, NFTA_SET_ELEM_LIST_SET, name);
    netlink_message_end(batch);
}

/* -- comparing -- */

struct comparison {
    const char *name;
    const struct nft_ranges *expected;
    size_t seen;
};

static bool key_read(struct netlink_attribute key, uint8_t *out, size_t length) {
    struct netlink_attribute data[NFTA_DATA_VALUE + 1];
    if (key.value == NULL)
        return false;
    netlink_attributes(key.value, key.length, data, NFTA_DATA_VALUE);
    if (data[NFTA_DATA_VALUE].value == NULL || data[NFTA_DATA_VALUE].length != length)
        return false;
    memcpy(out, data[NFTA_DATA_VALUE].value, length);
    return true;
}

static bool ranges_contain(const struct nft_ranges *ranges, const struct nft_range *range) {
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = range_order(&ranges->items[middle], range, (void *)(uintptr_t)ranges);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Elements are dumped in no order that is promised; there is none twice. */
static struct error *elements_compare(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct comparison *comparison = data;
    const struct nft_ranges *expected = comparison->expected;
    struct netlink_attribute table[NFTA_SET_ELEM_LIST_ELEMENTS + 1];
    if (type != ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWSETELEM) ||
        !netlink_message_read(payload, length, NULL, sizeof(struct nfgenmsg), table,
                              NFTA_SET_ELEM_LIST_ELEMENTS))
        return NULL;
    struct netlink_attribute list = table[NFTA_SET_ELEM_LIST_ELEMENTS], item;
    uint16_t item_type;
    for (size_t offset = 0;
         list.value != NULL && netlink_attribute_next(list.value, list.length, &offset, &item_type, &item);) {
        struct netlink_attribute element[NFTA_SET_ELEM_KEY_END + 1];
        struct nft_range range = {0};
        netlink_attributes(item.value, item.length, element, NFTA_SET_ELEM_KEY_END);
        struct netlink_attribute last = element[expected->keys ? NFTA_SET_ELEM_KEY : NFTA_SET_ELEM_KEY_END];
        if (!key_read(element[NFTA_SET_ELEM_KEY], range.first, key_length(expected)) ||
            !key_read(last, range.last, key_length(expected)) ||
            (expected->keys && element[NFTA_SET_ELEM_KEY_END].value != NULL) ||
            !ranges_contain(expected, &range))
            return error_new(ERROR_UNAVAILABLE,
                             "the egress wall is not as it was written: there is a further element in set %s",
                             comparison->name);
        comparison->seen++;
    }
    return NULL;
}

struct error *nft_ranges_compare(int socket, uint8_t family, const char *table, const char *name,
                                 const struct nft_ranges *ranges) {
    struct comparison comparison = {.name = name, .expected = ranges};
    netlink_batch_owned struct netlink_batch query = {0};
    message_begin(&query, NFT_MSG_GETSETELEM, NLM_F_DUMP, family, "elements of set", name);
    netlink_put_string(&query, NFTA_SET_ELEM_LIST_TABLE, table);
    netlink_put_string(&query, NFTA_SET_ELEM_LIST_SET, name);
    netlink_message_end(&query);
    TRY(netlink_query(socket, &query, elements_compare, &comparison, "read"));
    if (comparison.seen != ranges->count)
        return error_new(ERROR_UNAVAILABLE,
                         "the egress wall is not as it was written: an element is missing in set %s", name);
    return NULL;
}
