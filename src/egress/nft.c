#include "egress/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"

/* -- expressions -- */

struct expression {
    size_t element, data;
};

static struct expression expression_begin(struct netlink_batch *rule, const char *name) {
    struct expression expression;
    expression.element = netlink_nest_begin(rule, NFTA_LIST_ELEM);
    netlink_put_string(rule, NFTA_EXPR_NAME, name);
    expression.data = netlink_nest_begin(rule, NFTA_EXPR_DATA);
    return expression;
}

static void expression_end(struct netlink_batch *rule, struct expression expression) {
    netlink_nest_end(rule, expression.data);
    netlink_nest_end(rule, expression.element);
}

static void put_value(struct netlink_batch *rule, uint16_t type, const void *value, size_t length) {
    size_t nest = netlink_nest_begin(rule, type);
    netlink_put(rule, NFTA_DATA_VALUE, value, length);
    netlink_nest_end(rule, nest);
}

/* One value of a key, between the packet and a register: the register's attribute says which way. */
static void put_keyed(struct netlink_batch *rule, const char *name, uint16_t key_type, uint32_t key,
                      uint16_t register_type, uint32_t reg) {
    struct expression expression = expression_begin(rule, name);
    netlink_put_be32(rule, key_type, key);
    netlink_put_be32(rule, register_type, reg);
    expression_end(rule, expression);
}

void nft_load_meta(struct netlink_batch *rule, uint32_t key, uint32_t into) {
    put_keyed(rule, "meta", NFTA_META_KEY, key, NFTA_META_DREG, into);
}

void nft_set_meta(struct netlink_batch *rule, uint32_t key, uint32_t from) {
    put_keyed(rule, "meta", NFTA_META_KEY, key, NFTA_META_SREG, from);
}

void nft_load_conntrack(struct netlink_batch *rule, uint32_t key, uint32_t into) {
    put_keyed(rule, "ct", NFTA_CT_KEY, key, NFTA_CT_DREG, into);
}

void nft_set_conntrack(struct netlink_batch *rule, uint32_t key, uint32_t from) {
    put_keyed(rule, "ct", NFTA_CT_KEY, key, NFTA_CT_SREG, from);
}

void nft_load_payload(struct netlink_batch *rule, uint32_t base, uint32_t offset, uint32_t length,
                      uint32_t into) {
    struct expression expression = expression_begin(rule, "payload");
    netlink_put_be32(rule, NFTA_PAYLOAD_DREG, into);
    netlink_put_be32(rule, NFTA_PAYLOAD_BASE, base);
    netlink_put_be32(rule, NFTA_PAYLOAD_OFFSET, offset);
    netlink_put_be32(rule, NFTA_PAYLOAD_LEN, length);
    expression_end(rule, expression);
}

void nft_set_zone(struct netlink_batch *rule, uint8_t direction, uint32_t from) {
    struct expression expression = expression_begin(rule, "ct");
    netlink_put_be32(rule, NFTA_CT_KEY, NFT_CT_ZONE);
    netlink_put_u8(rule, NFTA_CT_DIRECTION, direction);
    netlink_put_be32(rule, NFTA_CT_SREG, from);
    expression_end(rule, expression);
}

void nft_untrack(struct netlink_batch *rule) {
    size_t element = netlink_nest_begin(rule, NFTA_LIST_ELEM);
    netlink_put_string(rule, NFTA_EXPR_NAME, "notrack"); /* has no data, and a dump no nest for it */
    netlink_nest_end(rule, element);
}

void nft_load_immediate(struct netlink_batch *rule, const void *value, size_t length, uint32_t into) {
    struct expression expression = expression_begin(rule, "immediate");
    netlink_put_be32(rule, NFTA_IMMEDIATE_DREG, into);
    put_value(rule, NFTA_IMMEDIATE_DATA, value, length);
    expression_end(rule, expression);
}

void nft_mask(struct netlink_batch *rule, uint32_t reg, const void *mask, size_t length) {
    uint8_t zero[16] = {0};
    struct expression expression = expression_begin(rule, "bitwise");
    netlink_put_be32(rule, NFTA_BITWISE_SREG, reg);
    netlink_put_be32(rule, NFTA_BITWISE_DREG, reg);
    netlink_put_be32(rule, NFTA_BITWISE_LEN, (uint32_t)length);
    put_value(rule, NFTA_BITWISE_MASK, mask, length);
    put_value(rule, NFTA_BITWISE_XOR, zero, length);
    expression_end(rule, expression);
}

void nft_compare(struct netlink_batch *rule, uint32_t reg, uint32_t operation, const void *value,
                 size_t length) {
    struct expression expression = expression_begin(rule, "cmp");
    netlink_put_be32(rule, NFTA_CMP_SREG, reg);
    netlink_put_be32(rule, NFTA_CMP_OP, operation);
    put_value(rule, NFTA_CMP_DATA, value, length);
    expression_end(rule, expression);
}

void nft_compare_u8(struct netlink_batch *rule, uint32_t reg, uint32_t operation, uint8_t value) {
    nft_compare(rule, reg, operation, &value, sizeof value);
}

void nft_lookup(struct netlink_batch *rule, const char *set, uint32_t reg) {
    struct expression expression = expression_begin(rule, "lookup");
    netlink_put_string(rule, NFTA_LOOKUP_SET, set);
    netlink_put_be32(rule, NFTA_LOOKUP_SREG, reg);
    expression_end(rule, expression);
}

void nft_add_to_set(struct netlink_batch *rule, const char *set, uint32_t reg) {
    struct expression expression = expression_begin(rule, "dynset");
    netlink_put_string(rule, NFTA_DYNSET_SET_NAME, set);
    netlink_put_be32(rule, NFTA_DYNSET_OP, NFT_DYNSET_OP_ADD);
    netlink_put_be32(rule, NFTA_DYNSET_SREG_KEY, reg);
    expression_end(rule, expression);
}

void nft_limit(struct netlink_batch *rule, uint64_t rate, uint32_t burst) {
    struct expression expression = expression_begin(rule, "limit");
    netlink_put_be64(rule, NFTA_LIMIT_RATE, rate);
    netlink_put_be64(rule, NFTA_LIMIT_UNIT, 1);
    netlink_put_be32(rule, NFTA_LIMIT_BURST, burst);
    netlink_put_be32(rule, NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
    expression_end(rule, expression);
}

void nft_count(struct netlink_batch *rule, const char *counter) {
    struct expression expression = expression_begin(rule, "objref");
    netlink_put_be32(rule, NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
    netlink_put_string(rule, NFTA_OBJREF_IMM_NAME, counter);
    expression_end(rule, expression);
}

void nft_log(struct netlink_batch *rule, uint16_t group, const char *prefix, uint32_t snap_length) {
    struct expression expression = expression_begin(rule, "log");
    netlink_put_be16(rule, NFTA_LOG_GROUP, group);
    netlink_put_string(rule, NFTA_LOG_PREFIX, prefix);
    netlink_put_be32(rule, NFTA_LOG_SNAPLEN, snap_length);
    expression_end(rule, expression);
}

void nft_reject(struct netlink_batch *rule, uint32_t type, uint8_t code) {
    struct expression expression = expression_begin(rule, "reject");
    netlink_put_be32(rule, NFTA_REJECT_TYPE, type);
    if (type != NFT_REJECT_TCP_RST)
        netlink_put_u8(rule, NFTA_REJECT_ICMP_CODE, code);
    expression_end(rule, expression);
}

void nft_redirect(struct netlink_batch *rule, uint32_t port) {
    struct expression expression = expression_begin(rule, "redir");
    netlink_put_be32(rule, NFTA_REDIR_REG_PROTO_MIN, port);
    expression_end(rule, expression);
}

void nft_verdict(struct netlink_batch *rule, int32_t verdict, const char *chain) {
    struct expression expression = expression_begin(rule, "immediate");
    netlink_put_be32(rule, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = netlink_nest_begin(rule, NFTA_IMMEDIATE_DATA);
    size_t inner = netlink_nest_begin(rule, NFTA_DATA_VERDICT);
    netlink_put_be32(rule, NFTA_VERDICT_CODE, (uint32_t)verdict);
    if (chain != NULL)
        netlink_put_string(rule, NFTA_VERDICT_CHAIN, chain);
    netlink_nest_end(rule, inner);
    netlink_nest_end(rule, data);
    expression_end(rule, expression);
}

/* -- objects -- */

static void batch_mark(struct netlink_batch *batch, uint16_t type, const char *subject) {
    struct nfgenmsg header = {
        .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    netlink_message_begin(batch, type, 0, &header, sizeof header, "%s", subject);
    netlink_message_end(batch);
}

void nft_batch_begin(struct netlink_batch *batch) {
    batch_mark(batch, NFNL_MSG_BATCH_BEGIN, "batch");
}

void nft_batch_end(struct netlink_batch *batch) {
    /* One acknowledgement is enough: refusals are always sent, and kernels before 6.10 acknowledge no end
     * mark. */
    uint16_t flags;
    uint8_t *at = batch->data + batch->message + offsetof(struct nlmsghdr, nlmsg_flags);
    memcpy(&flags, at, sizeof flags);
    flags |= NLM_F_ACK;
    memcpy(at, &flags, sizeof flags);
    batch_mark(batch, NFNL_MSG_BATCH_END, "batch end");
}

static void message_begin(struct netlink_batch *batch, uint16_t type, uint16_t flags, uint8_t family,
                          const char *what, const char *name) {
    struct nfgenmsg header = {.nfgen_family = family, .version = NFNETLINK_V0};
    netlink_message_begin(batch, (NFNL_SUBSYS_NFTABLES << 8) | type, flags, &header, sizeof header, "%s %s",
                          what, name);
}

void nft_table_add(struct netlink_batch *batch, uint8_t family, const char *table, const void *data,
                   size_t data_length, uint16_t flags) {
    message_begin(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE | flags, family, "table", table);
    netlink_put_string(batch, NFTA_TABLE_NAME, table);
    netlink_put_be32(batch, NFTA_TABLE_FLAGS, 0);
    if (data_length > 0)
        netlink_put(batch, NFTA_TABLE_USERDATA, data, data_length);
    netlink_message_end(batch);
}

void nft_table_delete(struct netlink_batch *batch, uint8_t family, const char *table) {
    message_begin(batch, NFT_MSG_DELTABLE, 0, family, "table", table);
    netlink_put_string(batch, NFTA_TABLE_NAME, table);
    netlink_message_end(batch);
}

void nft_counter_add(struct netlink_batch *batch, uint8_t family, const char *table, const char *name) {
    message_begin(batch, NFT_MSG_NEWOBJ, NLM_F_CREATE, family, "counter", name);
    netlink_put_string(batch, NFTA_OBJ_TABLE, table);
    netlink_put_string(batch, NFTA_OBJ_NAME, name);
    netlink_put_be32(batch, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
    netlink_nest_end(batch, netlink_nest_begin(batch, NFTA_OBJ_DATA));
    netlink_message_end(batch);
}

void nft_set_add(struct netlink_batch *batch, uint8_t family, const char *table, const char *name,
                 uint32_t key_length, uint64_t timeout_ms, uint32_t size) {
    message_begin(batch, NFT_MSG_NEWSET, NLM_F_CREATE, family, "set", name);
    netlink_put_string(batch, NFTA_SET_TABLE, table);
    netlink_put_string(batch, NFTA_SET_NAME, name);
    netlink_put_be32(batch, NFTA_SET_FLAGS, NFT_SET_EVAL | NFT_SET_TIMEOUT);
    netlink_put_be32(batch, NFTA_SET_KEY_TYPE, 4); /* nft's number for "integer"; the kernel only keeps it */
    netlink_put_be32(batch, NFTA_SET_KEY_LEN, key_length);
    netlink_put_be32(batch, NFTA_SET_ID, 1);
    netlink_put_be64(batch, NFTA_SET_TIMEOUT, timeout_ms);
    size_t description = netlink_nest_begin(batch, NFTA_SET_DESC);
    netlink_put_be32(batch, NFTA_SET_DESC_SIZE, size);
    netlink_nest_end(batch, description);
    netlink_message_end(batch);
}

/* The hook alone is what a chain dump nests alike, so that reading back can compare it. */
static void put_hook(struct netlink_batch *batch, const struct nft_chain *chain) {
    size_t hook = netlink_nest_begin(batch, NFTA_CHAIN_HOOK);
    netlink_put_be32(batch, NFTA_HOOK_HOOKNUM, chain->hook);
    netlink_put_be32(batch, NFTA_HOOK_PRIORITY, (uint32_t)chain->priority);
    if (chain->devices != NULL) {
        size_t devices = netlink_nest_begin(batch, NFTA_HOOK_DEVS);
        for (size_t i = 0; chain->devices[i] != NULL; i++)
            netlink_put_string(batch, NFTA_DEVICE_NAME, chain->devices[i]);
        netlink_nest_end(batch, devices);
    }
    netlink_nest_end(batch, hook);
}

static void put_chain(struct netlink_batch *batch, const char *table, const struct nft_chain *chain) {
    netlink_put_string(batch, NFTA_CHAIN_TABLE, table);
    netlink_put_string(batch, NFTA_CHAIN_NAME, chain->name);
    if (!chain->base)
        return;
    put_hook(batch, chain);
    netlink_put_be32(batch, NFTA_CHAIN_POLICY, chain->policy);
    netlink_put_string(batch, NFTA_CHAIN_TYPE, chain->nat ? "nat" : "filter");
}

void nft_chain_add(struct netlink_batch *batch, uint8_t family, const char *table,
                   const struct nft_chain *chain) {
    message_begin(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE, family, "chain", chain->name);
    put_chain(batch, table, chain);
    netlink_message_end(batch);
}

void nft_chain_flush(struct netlink_batch *batch, uint8_t family, const char *table, const char *chain) {
    message_begin(batch, NFT_MSG_DELRULE, 0, family, "rules of chain", chain);
    netlink_put_string(batch, NFTA_RULE_TABLE, table);
    netlink_put_string(batch, NFTA_RULE_CHAIN, chain);
    netlink_message_end(batch);
}

size_t nft_user_data_put(uint8_t *room, uint8_t type, const void *value, uint8_t length) {
    room[0] = type;
    room[1] = length;
    memcpy(room + 2, value, length);
    return (size_t)length + 2;
}

bool nft_user_data_find(struct netlink_attribute data, uint8_t type, struct netlink_attribute *out) {
    for (size_t offset = 0; data.value != NULL && data.length - offset >= 2;) {
        size_t length = data.value[offset + 1];
        if (length > data.length - offset - 2)
            return false;
        if (data.value[offset] == type) {
            *out = (struct netlink_attribute){.value = data.value + offset + 2, .length = length};
            return true;
        }
        offset += length + 2;
    }
    return false;
}

void nft_rule_add(struct netlink_batch *batch, uint8_t family, const char *table,
                  const struct nft_rule *rule) {
    uint8_t data[NFT_USERDATA_MAXLEN];
    struct nfgenmsg header = {.nfgen_family = family, .version = NFNETLINK_V0};
    netlink_message_begin(batch, (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND,
                          &header, sizeof header, "rule %s/%s", rule->chain, rule->name);
    netlink_put_string(batch, NFTA_RULE_TABLE, table);
    netlink_put_string(batch, NFTA_RULE_CHAIN, rule->chain);
    size_t expressions = netlink_nest_begin(batch, NFTA_RULE_EXPRESSIONS);
    netlink_put_raw(batch, rule->expressions.data, rule->expressions.length);
    netlink_nest_end(batch, expressions);
    size_t length = nft_user_data_put(data, 0, rule->name, (uint8_t)(strlen(rule->name) + 1));
    netlink_put(batch, NFTA_RULE_USERDATA, data, length);
    netlink_message_end(batch);
}

/* -- sending and reading -- */

struct error *nft_commit(int socket, const struct netlink_batch *batch, const char *operation) {
    return netlink_transact(socket, batch, batch->sequence - 1, operation);
}

struct table_answer {
    bool found;
    uint32_t flags;
    uint8_t *user_data;
    size_t capacity, length;
};

static struct error *table_collect(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct table_answer *answer = data;
    struct netlink_attribute table[NFTA_TABLE_USERDATA + 1];
    if (type != ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWTABLE) ||
        !netlink_message_read(payload, length, NULL, sizeof(struct nfgenmsg), table, NFTA_TABLE_USERDATA))
        return NULL;
    answer->found = true;
    answer->flags = netlink_get_be32(table[NFTA_TABLE_FLAGS]);
    struct netlink_attribute user_data = table[NFTA_TABLE_USERDATA];
    if (user_data.value != NULL && user_data.length <= answer->capacity) {
        memcpy(answer->user_data, user_data.value, user_data.length);
        answer->length = user_data.length;
    }
    return NULL;
}

struct error *nft_table_read(int socket, uint8_t family, const char *table, bool *found, uint32_t *flags,
                             uint8_t *user_data, size_t capacity, size_t *user_data_length) {
    netlink_batch_owned struct netlink_batch batch = {0};
    message_begin(&batch, NFT_MSG_GETTABLE, 0, family, "table", table);
    netlink_put_string(&batch, NFTA_TABLE_NAME, table);
    netlink_message_end(&batch);
    struct table_answer answer = {.user_data = user_data, .capacity = capacity};
    struct error *error = netlink_query(socket, &batch, table_collect, &answer, "read");
    /* EOPNOTSUPP: this kernel does not know the family. */
    if (error != NULL && (error->number == ENOENT || error->number == EOPNOTSUPP)) {
        error_free(error);
        error = NULL;
    }
    if (error != NULL)
        return error;
    *found = answer.found;
    *flags = answer.flags;
    *user_data_length = answer.length;
    return NULL;
}

struct counter_answer {
    bool found;
    uint64_t packets;
};

static struct error *counter_collect(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct counter_answer *answer = data;
    struct netlink_attribute object[NFTA_OBJ_DATA + 1], counter[NFTA_COUNTER_PACKETS + 1];
    if (type != ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWOBJ) ||
        !netlink_message_read(payload, length, NULL, sizeof(struct nfgenmsg), object, NFTA_OBJ_DATA))
        return NULL;
    if (object[NFTA_OBJ_DATA].value == NULL)
        return NULL;
    netlink_attributes(object[NFTA_OBJ_DATA].value, object[NFTA_OBJ_DATA].length, counter,
                       NFTA_COUNTER_PACKETS);
    answer->found = counter[NFTA_COUNTER_PACKETS].value != NULL;
    answer->packets = netlink_get_be64(counter[NFTA_COUNTER_PACKETS]);
    return NULL;
}

struct error *nft_counter_read(int socket, uint8_t family, const char *table, const char *name,
                               uint64_t *packets) {
    netlink_batch_owned struct netlink_batch batch = {0};
    message_begin(&batch, NFT_MSG_GETOBJ, 0, family, "counter", name);
    netlink_put_string(&batch, NFTA_OBJ_TABLE, table);
    netlink_put_string(&batch, NFTA_OBJ_NAME, name);
    netlink_put_be32(&batch, NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
    netlink_message_end(&batch);
    struct counter_answer answer = {0};
    TRY(netlink_query(socket, &batch, counter_collect, &answer, "read"));
    if (!answer.found)
        return error_system(EPROTO, "read", "counter %s", name);
    *packets = answer.packets;
    return NULL;
}

struct comment_answer {
    const char *table, *chain;
    char *comment;
    size_t size;
    bool found;
};

static struct error *comment_collect(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct comment_answer *answer = data;
    struct netlink_attribute rule[NFTA_RULE_USERDATA + 1], comment;
    if (type != ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWRULE) ||
        !netlink_message_read(payload, length, NULL, sizeof(struct nfgenmsg), rule, NFTA_RULE_USERDATA))
        return NULL;
    if (answer->found || !netlink_is_string(rule[NFTA_RULE_TABLE], answer->table) ||
        !netlink_is_string(rule[NFTA_RULE_CHAIN], answer->chain) ||
        !nft_user_data_find(rule[NFTA_RULE_USERDATA], 0, &comment) || comment.length > answer->size ||
        comment.length == 0)
        return NULL;
    memcpy(answer->comment, comment.value, comment.length);
    answer->comment[comment.length - 1] = '\0';
    answer->found = true;
    return NULL;
}

struct error *nft_comment_read(int socket, uint8_t family, const char *table, const char *chain,
                               char *comment, size_t size, bool *found) {
    struct comment_answer answer = {.table = table, .chain = chain, .comment = comment, .size = size};
    netlink_batch_owned struct netlink_batch query = {0};
    message_begin(&query, NFT_MSG_GETRULE, NLM_F_DUMP, family, "rules of table", table);
    netlink_put_string(&query, NFTA_RULE_TABLE, table);
    netlink_message_end(&query);
    TRY(netlink_query(socket, &query, comment_collect, &answer, "read"));
    *found = answer.found;
    return NULL;
}

/* -- comparing -- */

/* Finds the attribute of this type that stands after `skip` others of it, and counts them all. */
static bool attribute_find(const uint8_t *bytes, size_t length, uint16_t wanted, size_t skip,
                           struct netlink_attribute *out, size_t *count) {
    size_t offset = 0;
    uint16_t type;
    struct netlink_attribute attribute;
    *count = 0;
    bool found = false;
    while (netlink_attribute_next(bytes, length, &offset, &type, &attribute)) {
        if (type != wanted)
            continue;
        if (*count == skip) {
            *out = attribute;
            found = true;
        }
        (*count)++;
    }
    return found;
}

/* What nests is told by the flag in `expected`: the kernel's dumps lack it in places. */
bool nft_attributes_match(const uint8_t *expected, size_t expected_length, const uint8_t *actual,
                          size_t actual_length) {
    for (size_t offset = 0; offset < expected_length;) {
        size_t begin = offset, before, written, present;
        struct nlattr header;
        uint16_t type;
        struct netlink_attribute value, other = {0};
        if (!netlink_attribute_next(expected, expected_length, &offset, &type, &value))
            return false;
        memcpy(&header, expected + begin, sizeof header);
        attribute_find(expected, begin, type, 0, &other, &before);
        attribute_find(expected, expected_length, type, 0, &other, &written);
        if (!attribute_find(actual, actual_length, type, before, &other, &present) || written != present)
            return false;
        if (header.nla_type & NLA_F_NESTED) {
            if (!nft_attributes_match(value.value, value.length, other.value, other.length))
                return false;
        } else if (value.length != other.length || memcmp(value.value, other.value, value.length) != 0) {
            return false;
        }
    }
    return true;
}

struct comparison {
    const char *table;
    const struct nft_chain *chains;
    const struct nft_rule *rules;
    size_t chain_count, rule_count;
    size_t chains_seen;
    bool *seen; /* parallel to rules */
};

static struct error *changed(const char *what, const char *name) {
    return error_new(ERROR_UNAVAILABLE, "the egress wall is not as it was written: %s%s", what, name);
}

/* A string of the kernel's, bounded, for messages. */
static const char *attribute_words(struct netlink_attribute attribute, char *room, size_t size) {
    size_t length = attribute.value == NULL ? 0 : strnlen((const char *)attribute.value, attribute.length);
    if (length >= size)
        length = size - 1;
    if (length > 0)
        memcpy(room, attribute.value, length);
    room[length] = '\0';
    return room;
}

static struct error *chain_compare(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct comparison *comparison = data;
    struct netlink_attribute table[NFTA_CHAIN_NAME + 1];
    if (type != ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWCHAIN) || length < sizeof(struct nfgenmsg))
        return NULL;
    payload += sizeof(struct nfgenmsg);
    length -= sizeof(struct nfgenmsg);
    netlink_attributes(payload, length, table, NFTA_CHAIN_NAME);
    if (!netlink_is_string(table[NFTA_CHAIN_TABLE], comparison->table))
        return NULL;
    for (size_t i = 0; i < comparison->chain_count; i++) {
        const struct nft_chain *chain = &comparison->chains[i];
        if (!netlink_is_string(table[NFTA_CHAIN_NAME], chain->name))
            continue;
        netlink_batch_owned struct netlink_batch expected = {0};
        put_chain(&expected, comparison->table, chain);
        struct netlink_attribute hook;
        size_t hooks;
        if (!nft_attributes_match(expected.data, expected.length, payload, length) ||
            attribute_find(payload, length, NFTA_CHAIN_HOOK, 0, &hook, &hooks) != chain->base)
            return changed("the hook or policy differs of chain ", chain->name);
        comparison->chains_seen++;
        return NULL;
    }
    char name[64];
    return changed("there is a further chain ", attribute_words(table[NFTA_CHAIN_NAME], name, sizeof name));
}

static struct error *rule_compare(uint16_t type, const uint8_t *payload, size_t length, void *data) {
    struct comparison *comparison = data;
    struct netlink_attribute table[NFTA_RULE_USERDATA + 1];
    if (type != ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWRULE) ||
        !netlink_message_read(payload, length, NULL, sizeof(struct nfgenmsg), table, NFTA_RULE_USERDATA))
        return NULL;
    if (!netlink_is_string(table[NFTA_RULE_TABLE], comparison->table))
        return NULL;
    /* The kernel lists rules chain by chain in the order in which the chains were made, which is not the
     * plan's where one was added later. */
    size_t next = 0;
    while (
        next < comparison->rule_count &&
        (comparison->seen[next] || !netlink_is_string(table[NFTA_RULE_CHAIN], comparison->rules[next].chain)))
        next++;
    char name[64];
    if (next == comparison->rule_count)
        return changed("there is a further rule in chain ",
                       attribute_words(table[NFTA_RULE_CHAIN], name, sizeof name));
    comparison->seen[next] = true;
    const struct nft_rule *rule = &comparison->rules[next];
    struct netlink_attribute comment;
    if (!nft_user_data_find(table[NFTA_RULE_USERDATA], 0, &comment) ||
        !netlink_is_string(comment, rule->name))
        return changed("another rule stands in the place of ", rule->name);
    if (!nft_attributes_match(rule->expressions.data, rule->expressions.length,
                              table[NFTA_RULE_EXPRESSIONS].value, table[NFTA_RULE_EXPRESSIONS].length))
        return changed("the content differs of rule ", rule->name);
    return NULL;
}

struct error *nft_compare_table(int socket, uint8_t family, const char *table, const struct nft_chain *chains,
                                size_t chain_count, const struct nft_rule *rules, size_t rule_count) {
    struct comparison comparison = {.table = table,
                                    .chains = chains,
                                    .chain_count = chain_count,
                                    .rules = rules,
                                    .rule_count = rule_count};
    memory_owned bool *seen = memory_zeroed((rule_count + 1) * sizeof *seen);
    comparison.seen = seen;
    netlink_batch_owned struct netlink_batch chain_query = {0}, rule_query = {0};
    message_begin(&chain_query, NFT_MSG_GETCHAIN, NLM_F_DUMP, family, "chains of table", table);
    netlink_message_end(&chain_query);
    TRY(netlink_query(socket, &chain_query, chain_compare, &comparison, "read"));
    if (comparison.chains_seen != chain_count)
        return changed("a chain is missing", "");
    message_begin(&rule_query, NFT_MSG_GETRULE, NLM_F_DUMP, family, "rules of table", table);
    netlink_put_string(&rule_query, NFTA_RULE_TABLE, table);
    netlink_message_end(&rule_query);
    TRY(netlink_query(socket, &rule_query, rule_compare, &comparison, "read"));
    for (size_t i = 0; i < rule_count; i++)
        if (!seen[i])
            return changed("missing is rule ", rules[i].name);
    return NULL;
}
