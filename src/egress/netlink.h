/* Netlink messages: built, sent as one datagram, answered, and taken apart. Used by the routes, the rules and
 * the socket look-up; knows none of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A run of messages that is sent at once. `struct netlink_batch b = {0};` is empty; netlink_batch_free ends
 * it. */
struct netlink_batch {
    uint8_t *data;
    size_t length, capacity;
    size_t message;       /* offset of the message that is being built */
    uint32_t sequence;    /* of the last message; the first has 1 */
    char (*subjects)[48]; /* what each message is about, for errors: subjects[sequence - 1] */
};
void netlink_batch_free(struct netlink_batch *batch);
#define netlink_batch_owned __attribute__((cleanup(netlink_batch_free)))

/* Begins a message with the family's own header; NLM_F_REQUEST is added. The format names its subject. */
void netlink_message_begin(struct netlink_batch *batch, uint16_t type, uint16_t flags, const void *header,
                           size_t header_length, const char *subject, ...)
    __attribute__((format(printf, 6, 7)));
/* Ends it: the length is filled in. */
void netlink_message_end(struct netlink_batch *batch);

void netlink_put(struct netlink_batch *batch, uint16_t type, const void *value, size_t length);
void netlink_put_u8(struct netlink_batch *batch, uint16_t type, uint8_t value);
void netlink_put_u32(struct netlink_batch *batch, uint16_t type,
                     uint32_t value); /* host order, as rtnetlink wants */
void netlink_put_be16(struct netlink_batch *batch, uint16_t type, uint16_t value);
void netlink_put_be32(struct netlink_batch *batch, uint16_t type, uint32_t value);
void netlink_put_be64(struct netlink_batch *batch, uint16_t type, uint64_t value);
void netlink_put_string(struct netlink_batch *batch, uint16_t type, const char *value);
/* Attributes that were built elsewhere, headers included. */
void netlink_put_raw(struct netlink_batch *batch, const void *bytes, size_t length);
size_t netlink_nest_begin(struct netlink_batch *batch, uint16_t type);
void netlink_nest_end(struct netlink_batch *batch, size_t nest);

/* A socket of the calling thread's network namespace, close-on-exec and non-blocking: the kernel answers
 * netlink requests before sendmsg returns, so an empty queue means that there is no answer, never "not yet".
 */
fallible netlink_open(int protocol, int *out);

/* Sends the batch and reads answers until message `last` (a sequence number, which must carry NLM_F_ACK) is
 * acknowledged. The first refusal is returned as ERROR_SYSTEM whose message names the operation, the subject
 * of the refused message and what the kernel said about it. */
fallible netlink_transact(int socket, const struct netlink_batch *batch, uint32_t last,
                          const char *operation);

/* Sends the batch, whose messages are independent and all carry NLM_F_ACK, and gives the errno of each in
 * results[sequence - 1] (0: done). */
fallible netlink_transact_each(int socket, const struct netlink_batch *batch, int *results,
                               const char *operation);

/* Sends a request with one message and calls `each` with the payload (after nlmsghdr) of every answer. A
 * refusal is ERROR_SYSTEM with the kernel's errno. */
fallible netlink_query(int socket, const struct netlink_batch *batch,
                       fallible (*each)(uint16_t type, const uint8_t *payload, size_t length, void *data),
                       void *data, const char *operation);

/* One attribute as it lies in a message. */
struct netlink_attribute {
    const uint8_t *value; /* NULL: absent */
    size_t length;
};
/* Walks the attributes in `bytes`: takes the next, advances *offset; false at the end or at the first one
 * that does not fit. *type comes without the nesting flags. */
bool netlink_attribute_next(const uint8_t *bytes, size_t length, size_t *offset, uint16_t *type,
                            struct netlink_attribute *out);
/* Fills table[0..maximum] with the attributes found; the last of a repeated type wins, unknown types are
 * skipped. */
void netlink_attributes(const uint8_t *bytes, size_t length, struct netlink_attribute *table,
                        uint16_t maximum);
/* Takes a message apart: its family's header into `header`, of `size` bytes (NULL: skipped), and the
 * attributes behind it as netlink_attributes does. False for a message that is too short for its header. */
bool netlink_message_read(const uint8_t *payload, size_t length, void *header, size_t size,
                          struct netlink_attribute *table, uint16_t maximum);
/* The value as a number in network order, 0 where the attribute is absent or short. */
uint16_t netlink_get_be16(struct netlink_attribute attribute);
uint32_t netlink_get_be32(struct netlink_attribute attribute);
uint64_t netlink_get_be64(struct netlink_attribute attribute);
uint32_t netlink_get_u32(struct netlink_attribute attribute);
/* True when it is the string, with or without its NUL. */
bool netlink_is_string(struct netlink_attribute attribute, const char *string);
