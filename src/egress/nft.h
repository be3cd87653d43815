/* nf_tables in its own terms: tables, chains, sets, rules and their expressions as netlink attributes,
 * written as one batch and read back. Knows no policy; rules.c says which rules there are. */
#pragma once

/* Before <linux/in.h>, which the next ones include and which would define the same things again. */
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "egress/netlink.h"

/* Registers as the kernel reports them back: 16 bytes each. */
#define REGISTER_A NFT_REG_1
#define REGISTER_B NFT_REG_2
/* The four bytes after an IPv4 address in REGISTER_A; after an IPv6 address come those of REGISTER_B. */
#define REGISTER_A_SECOND NFT_REG32_01

/* -- expressions, appended to a buffer: each is one NFTA_LIST_ELEM -- */
void nft_load_meta(struct netlink_batch *rule, uint32_t key, uint32_t into);
void nft_set_meta(struct netlink_batch *rule, uint32_t key, uint32_t from);
void nft_load_payload(struct netlink_batch *rule, uint32_t base, uint32_t offset, uint32_t length,
                      uint32_t into);
void nft_load_conntrack(struct netlink_batch *rule, uint32_t key, uint32_t into);
void nft_set_conntrack(struct netlink_batch *rule, uint32_t key, uint32_t from);
/* The zone in which connection tracking looks the packet up, for chains that come before it, with
 * IP_CT_DIR_ORIGINAL; answers are looked up in that of everybody. */
void nft_set_zone(struct netlink_batch *rule, uint8_t direction, uint32_t from);
/* Keeps the packet out of connection tracking: for chains that come before it, at WALL_BEFORE_TRACKING. */
void nft_untrack(struct netlink_batch *rule);
void nft_load_immediate(struct netlink_batch *rule, const void *value, size_t length, uint32_t into);
/* register = register & mask */
void nft_mask(struct netlink_batch *rule, uint32_t reg, const void *mask, size_t length);
void nft_compare(struct netlink_batch *rule, uint32_t reg, uint32_t operation, const void *value,
                 size_t length);
void nft_compare_u8(struct netlink_batch *rule, uint32_t reg, uint32_t operation, uint8_t value);
/* The rule goes on only where the register's value is in the set. */
void nft_lookup(struct netlink_batch *rule, const char *set, uint32_t reg);
/* Adds the register's value to the set for the set's own timeout; the rule ends here when the set is full. */
void nft_add_to_set(struct netlink_batch *rule, const char *set, uint32_t reg);
/* The rule goes on only below `rate` packets a second after a burst. */
void nft_limit(struct netlink_batch *rule, uint64_t rate, uint32_t burst);
void nft_count(struct netlink_batch *rule, const char *counter);
void nft_log(struct netlink_batch *rule, uint16_t group, const char *prefix, uint32_t snap_length);
void nft_reject(struct netlink_batch *rule, uint32_t type, uint8_t code);
/* To loopback of this namespace, at the port (network order) in the register. For chains of type nat. */
void nft_redirect(struct netlink_batch *rule, uint32_t port);
/* NF_ACCEPT, NF_DROP, NFT_RETURN; or NFT_JUMP, NFT_GOTO with a chain. */
void nft_verdict(struct netlink_batch *rule, int32_t verdict, const char *chain);

/* -- objects, as messages of a batch -- */
void nft_batch_begin(struct netlink_batch *batch);
void nft_batch_end(struct netlink_batch *batch);
/* `data` is the table's user data. NLM_F_EXCL in `flags`: refused where the table exists. */
void nft_table_add(struct netlink_batch *batch, uint8_t family, const char *table, const void *data,
                   size_t data_length, uint16_t flags);
void nft_table_delete(struct netlink_batch *batch, uint8_t family, const char *table);
void nft_counter_add(struct netlink_batch *batch, uint8_t family, const char *table, const char *name);
/* A set that rules fill: elements of `key_length` bytes that go after `timeout_ms`. */
void nft_set_add(struct netlink_batch *batch, uint8_t family, const char *table, const char *name,
                 uint32_t key_length, uint64_t timeout_ms, uint32_t size);

struct nft_chain {
    const char *name;
    bool base; /* hooked; the following are of base chains alone */
    bool nat;  /* of type nat, else filter */
    uint32_t hook;
    int32_t priority;
    uint32_t policy;            /* NF_ACCEPT, NF_DROP */
    const char *const *devices; /* netdev family: names, NULL-terminated; else NULL */
};
void nft_chain_add(struct netlink_batch *batch, uint8_t family, const char *table,
                   const struct nft_chain *chain);
/* Takes all rules out of the chain. */
void nft_chain_flush(struct netlink_batch *batch, uint8_t family, const char *table, const char *chain);

struct nft_rule {
    const char *chain;
    const char *name; /* a comment in the rule's user data: shown by `nft list ruleset` */
    struct netlink_batch expressions;
};
void nft_rule_add(struct netlink_batch *batch, uint8_t family, const char *table,
                  const struct nft_rule *rule);

/* One entry of user data in the form that nft(8) writes and reads: type, length, value. Type 0 is a comment,
 * a string with its NUL. Returns the length written; `room` must hold length + 2 bytes. */
size_t nft_user_data_put(uint8_t *room, uint8_t type, const void *value, uint8_t length);
/* Finds an entry; false when there is none. */
bool nft_user_data_find(struct netlink_attribute data, uint8_t type, struct netlink_attribute *out);

/* -- sending and reading; `socket` is NETLINK_NETFILTER -- */

/* Sends a finished batch: all of it or, with an error that names the refused object, nothing of it. */
fallible nft_commit(int socket, const struct netlink_batch *batch, const char *operation);

/* Reads one table: *found false when there is none. user_data is copied, at most `capacity` bytes. */
fallible nft_table_read(int socket, uint8_t family, const char *table, bool *found, uint32_t *flags,
                        uint8_t *user_data, size_t capacity, size_t *user_data_length);

/* The comment of the chain's first rule; *found false where it has none, or a longer one. */
fallible nft_comment_read(int socket, uint8_t family, const char *table, const char *chain, char *comment,
                          size_t size, bool *found);

/* Fails, naming what differs, unless the table holds exactly these chains, with these hooks and policies, and
 * these rules, those of each chain in this order: each attribute that would be written must be there with the
 * same value, and no further expression. What the kernel adds by itself (handles, counts, defaults) is not
 * compared. */
fallible nft_compare_table(int socket, uint8_t family, const char *table, const struct nft_chain *chains,
                           size_t chain_count, const struct nft_rule *rules, size_t rule_count);

/* Reads a named counter's packets. */
fallible nft_counter_read(int socket, uint8_t family, const char *table, const char *name, uint64_t *packets);

/* True when every attribute of `expected` is in `actual` with the same value, nested ones likewise, and lists
 * have the same number of elements in the same order. For the tests. */
bool nft_attributes_match(const uint8_t *expected, size_t expected_length, const uint8_t *actual,
                          size_t actual_length);
