#include "egress/netlink.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"

/* Larger than any answer: the kernel fills dumps into buffers of at most 32 KiB. Not on the stack, where the
 * compiler touches each of its pages. */
#define ANSWER_SIZE (33 * 1024)
/* One rule's expressions. Each page that is touched is a page fault, as dear as the rule itself. */
#define BATCH_FIRST 512

void netlink_batch_free(struct netlink_batch *batch) {
    free(batch->data);
    free(batch->subjects);
    *batch = (struct netlink_batch){0};
}

/* Room for `size` more bytes, zeroed, padded to the alignment of netlink. */
static uint8_t *batch_room(struct netlink_batch *batch, size_t size) {
    size_t padded = NLMSG_ALIGN(size);
    if (batch->length + padded > batch->capacity) {
        size_t capacity = batch->capacity > 0 ? batch->capacity * 2 : BATCH_FIRST;
        while (capacity < batch->length + padded)
            capacity *= 2;
        batch->data = memory_resize(batch->data, capacity, 1);
        batch->capacity = capacity;
    }
    uint8_t *room = batch->data + batch->length;
    memset(room, 0, padded);
    batch->length += padded;
    return room;
}

void netlink_message_begin(struct netlink_batch *batch, uint16_t type, uint16_t flags, const void *header,
                           size_t header_length, const char *subject, ...) {
    batch->message = batch->length;
    if (batch->sequence % 32 == 0)
        batch->subjects = memory_resize(batch->subjects, batch->sequence + 32, sizeof batch->subjects[0]);
    va_list arguments;
    va_start(arguments, subject);
    vsnprintf(batch->subjects[batch->sequence], sizeof batch->subjects[0], subject, arguments);
    va_end(arguments);
    batch->sequence++;
    struct nlmsghdr message = {
        .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = batch->sequence};
    memcpy(batch_room(batch, sizeof message), &message, sizeof message);
    memcpy(batch_room(batch, header_length), header, header_length);
}

void netlink_message_end(struct netlink_batch *batch) {
    uint32_t length = (uint32_t)(batch->length - batch->message);
    memcpy(batch->data + batch->message + offsetof(struct nlmsghdr, nlmsg_len), &length, sizeof length);
}

void netlink_put(struct netlink_batch *batch, uint16_t type, const void *value, size_t length) {
    struct nlattr attribute = {.nla_len = (uint16_t)(NLA_HDRLEN + length), .nla_type = type};
    uint8_t *room = batch_room(batch, NLA_HDRLEN + length);
    memcpy(room, &attribute, sizeof attribute);
    if (length > 0)
        memcpy(room + NLA_HDRLEN, value, length);
}

void netlink_put_u8(struct netlink_batch *batch, uint16_t type, uint8_t value) {
    netlink_put(batch, type, &value, sizeof value);
}

void netlink_put_u32(struct netlink_batch *batch, uint16_t type, uint32_t value) {
    netlink_put(batch, type, &value, sizeof value);
}

void netlink_put_be16(struct netlink_batch *batch, uint16_t type, uint16_t value) {
    value = htons(value);
    netlink_put(batch, type, &value, sizeof value);
}

void netlink_put_be32(struct netlink_batch *batch, uint16_t type, uint32_t value) {
    value = htonl(value);
    netlink_put(batch, type, &value, sizeof value);
}

void netlink_put_be64(struct netlink_batch *batch, uint16_t type, uint64_t value) {
    value = htobe64(value);
    netlink_put(batch, type, &value, sizeof value);
}

void netlink_put_string(struct netlink_batch *batch, uint16_t type, const char *value) {
    netlink_put(batch, type, value, strlen(value) + 1);
}

void netlink_put_raw(struct netlink_batch *batch, const void *bytes, size_t length) {
    if (length > 0)
        memcpy(batch_room(batch, length), bytes, length);
}

size_t netlink_nest_begin(struct netlink_batch *batch, uint16_t type) {
    size_t nest = batch->length;
    netlink_put(batch, type | NLA_F_NESTED, NULL, 0);
    return nest;
}

void netlink_nest_end(struct netlink_batch *batch, size_t nest) {
    uint16_t length = (uint16_t)(batch->length - nest);
    memcpy(batch->data + nest + offsetof(struct nlattr, nla_len), &length, sizeof length);
}

struct error *netlink_open(int protocol, int *out) {
    fd_owned int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0)
        return error_system(errno, "socket", "netlink protocol %d", protocol);
    /* Refusals then say why, and do not carry the refused message back. Both since Linux 4.12; only words are
     * lost without them. */
    int on = 1;
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    (void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    *out = fd_take(&fd);
    return NULL;
}

static struct error *batch_send(int socket, const struct netlink_batch *batch, const char *operation) {
    /* What an earlier request left unread (its caller stopped at the first error) must not answer this one.
     */
    while (recv(socket, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) >= 0)
        continue;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct iovec part = {.iov_base = batch->data, .iov_len = batch->length};
    struct msghdr message = {
        .msg_name = &kernel, .msg_namelen = sizeof kernel, .msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, 0);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return error_system(errno, operation, "netlink request");
    return NULL;
}

/* Reads one datagram that the kernel itself sent. *length 0: the queue is empty. */
static struct error *answer_read(int socket, uint8_t *buffer, size_t *length, const char *operation) {
    for (;;) {
        struct sockaddr_nl sender = {0};
        socklen_t sender_length = sizeof sender;
        ssize_t received =
            recvfrom(socket, buffer, ANSWER_SIZE, MSG_DONTWAIT, (struct sockaddr *)&sender, &sender_length);
        if (received < 0 && errno == EINTR)
            continue;
        if (received < 0 && errno == EAGAIN) {
            *length = 0;
            return NULL;
        }
        if (received < 0)
            return error_system(errno, operation, "netlink answer");
        /* Another process may send to our port; only port 0 is the kernel. */
        if (sender.nl_pid != 0)
            continue;
        *length = (size_t)received;
        return NULL;
    }
}

/* Takes the next message out of a datagram; false at its end. */
static bool answer_next(const uint8_t *buffer, size_t length, size_t *offset, struct nlmsghdr *header,
                        const uint8_t **payload, size_t *payload_length) {
    if (length - *offset < sizeof *header)
        return false;
    memcpy(header, buffer + *offset, sizeof *header);
    if (header->nlmsg_len < sizeof *header || header->nlmsg_len > length - *offset)
        return false;
    *payload = buffer + *offset + NLMSG_HDRLEN;
    *payload_length = header->nlmsg_len - NLMSG_HDRLEN;
    size_t step = NLMSG_ALIGN(header->nlmsg_len);
    *offset = step > length - *offset ? length : *offset + step;
    return true;
}

/* What an NLMSG_ERROR says: the errno, and the kernel's words where it has any. */
static int answer_error(const struct nlmsghdr *header, const uint8_t *payload, size_t length, char *words,
                        size_t words_size) {
    struct nlmsgerr refusal;
    words[0] = '\0';
    if (length < sizeof refusal)
        return EPROTO;
    memcpy(&refusal, payload, sizeof refusal);
    if (refusal.error == 0 || !(header->nlmsg_flags & NLM_F_ACK_TLVS))
        return -refusal.error;
    size_t skip = sizeof refusal;
    if (!(header->nlmsg_flags & NLM_F_CAPPED) && refusal.msg.nlmsg_len >= NLMSG_HDRLEN)
        skip += NLMSG_ALIGN(refusal.msg.nlmsg_len - NLMSG_HDRLEN);
    struct netlink_attribute table[NLMSGERR_ATTR_MSG + 1];
    if (skip > length)
        return -refusal.error;
    netlink_attributes(payload + skip, length - skip, table, NLMSGERR_ATTR_MSG);
    if (table[NLMSGERR_ATTR_MSG].value != NULL)
        snprintf(words, words_size, " (%.*s)", (int)table[NLMSGERR_ATTR_MSG].length,
                 (const char *)table[NLMSGERR_ATTR_MSG].value);
    return -refusal.error;
}

static const char *batch_subject(const struct netlink_batch *batch, uint32_t sequence) {
    return sequence >= 1 && sequence <= batch->sequence ? batch->subjects[sequence - 1] : "request";
}

struct error *netlink_transact(int socket, const struct netlink_batch *batch, uint32_t last,
                               const char *operation) {
    TRY(batch_send(socket, batch, operation));
    memory_owned uint8_t *buffer = memory_resize(NULL, ANSWER_SIZE, 1);
    for (;;) {
        size_t length, offset = 0, payload_length;
        TRY(answer_read(socket, buffer, &length, operation));
        if (length == 0)
            return error_system(EPROTO, operation, "%s: no acknowledgement", batch_subject(batch, last));
        struct nlmsghdr header;
        const uint8_t *payload;
        while (answer_next(buffer, length, &offset, &header, &payload, &payload_length)) {
            if (header.nlmsg_type != NLMSG_ERROR)
                continue;
            char words[160];
            int number = answer_error(&header, payload, payload_length, words, sizeof words);
            if (number != 0)
                return error_system(number, operation, "%s%s", batch_subject(batch, header.nlmsg_seq), words);
            if (header.nlmsg_seq == last)
                return NULL;
        }
    }
}

struct error *netlink_transact_each(int socket, const struct netlink_batch *batch, int *results,
                                    const char *operation) {
    TRY(batch_send(socket, batch, operation));
    memory_owned uint8_t *buffer = memory_resize(NULL, ANSWER_SIZE, 1);
    uint32_t answered = 0;
    while (answered < batch->sequence) {
        size_t length, offset = 0, payload_length;
        TRY(answer_read(socket, buffer, &length, operation));
        if (length == 0)
            return error_system(EPROTO, operation, "%s: no acknowledgement",
                                batch_subject(batch, answered + 1));
        struct nlmsghdr header;
        const uint8_t *payload;
        while (answer_next(buffer, length, &offset, &header, &payload, &payload_length)) {
            if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq < 1 ||
                header.nlmsg_seq > batch->sequence)
                continue;
            char words[160];
            results[header.nlmsg_seq - 1] =
                answer_error(&header, payload, payload_length, words, sizeof words);
            answered++;
        }
    }
    return NULL;
}

struct error *netlink_query(int socket, const struct netlink_batch *batch,
                            struct error *(*each)(uint16_t type, const uint8_t *payload, size_t length,
                                                  void *data),
                            void *data, const char *operation) {
    TRY(batch_send(socket, batch, operation));
    memory_owned uint8_t *buffer = memory_resize(NULL, ANSWER_SIZE, 1);
    for (;;) {
        size_t length, offset = 0, payload_length;
        TRY(answer_read(socket, buffer, &length, operation));
        if (length == 0)
            return error_system(EPROTO, operation, "%s: the answer has no end", batch_subject(batch, 1));
        struct nlmsghdr header;
        const uint8_t *payload;
        while (answer_next(buffer, length, &offset, &header, &payload, &payload_length)) {
            if (header.nlmsg_seq != batch->sequence)
                continue;
            if (header.nlmsg_flags & NLM_F_DUMP_INTR)
                return error_system(EAGAIN, operation, "%s: changed while it was read",
                                    batch_subject(batch, 1));
            if (header.nlmsg_type == NLMSG_DONE) {
                int number = 0; /* of the dump; negative when it failed half way */
                if (payload_length >= sizeof number)
                    memcpy(&number, payload, sizeof number);
                return number < 0 ? error_system(-number, operation, "%s", batch_subject(batch, 1)) : NULL;
            }
            if (header.nlmsg_type == NLMSG_ERROR) {
                char words[160];
                int number = answer_error(&header, payload, payload_length, words, sizeof words);
                if (number != 0)
                    return error_system(number, operation, "%s%s", batch_subject(batch, 1), words);
                return NULL;
            }
            TRY(each(header.nlmsg_type, payload, payload_length, data));
            if (!(header.nlmsg_flags & NLM_F_MULTI))
                return NULL;
        }
    }
}

bool netlink_attribute_next(const uint8_t *bytes, size_t length, size_t *offset, uint16_t *type,
                            struct netlink_attribute *out) {
    struct nlattr attribute;
    if (*offset > length || length - *offset < sizeof attribute)
        return false;
    memcpy(&attribute, bytes + *offset, sizeof attribute);
    if (attribute.nla_len < sizeof attribute || attribute.nla_len > length - *offset)
        return false;
    *type = attribute.nla_type & NLA_TYPE_MASK;
    *out = (struct netlink_attribute){.value = bytes + *offset + NLA_HDRLEN,
                                      .length = attribute.nla_len - NLA_HDRLEN};
    *offset += NLA_ALIGN(attribute.nla_len);
    return true;
}

void netlink_attributes(const uint8_t *bytes, size_t length, struct netlink_attribute *table,
                        uint16_t maximum) {
    memset(table, 0, ((size_t)maximum + 1) * sizeof *table);
    size_t offset = 0;
    uint16_t type;
    struct netlink_attribute attribute;
    while (netlink_attribute_next(bytes, length, &offset, &type, &attribute))
        if (type <= maximum)
            table[type] = attribute;
}

bool netlink_message_read(const uint8_t *payload, size_t length, void *header, size_t size,
                          struct netlink_attribute *table, uint16_t maximum) {
    size_t skip = NLMSG_ALIGN(size);
    if (length < skip)
        return false;
    if (header != NULL)
        memcpy(header, payload, size);
    netlink_attributes(payload + skip, length - skip, table, maximum);
    return true;
}

uint16_t netlink_get_be16(struct netlink_attribute attribute) {
    uint16_t value;
    if (attribute.value == NULL || attribute.length < sizeof value)
        return 0;
    memcpy(&value, attribute.value, sizeof value);
    return ntohs(value);
}

uint32_t netlink_get_u32(struct netlink_attribute attribute) {
    uint32_t value;
    if (attribute.value == NULL || attribute.length < sizeof value)
        return 0;
    memcpy(&value, attribute.value, sizeof value);
    return value;
}

uint32_t netlink_get_be32(struct netlink_attribute attribute) {
    return ntohl(netlink_get_u32(attribute));
}

uint64_t netlink_get_be64(struct netlink_attribute attribute) {
    uint64_t value;
    if (attribute.value == NULL || attribute.length < sizeof value)
        return 0;
    memcpy(&value, attribute.value, sizeof value);
    return be64toh(value);
}

bool netlink_is_string(struct netlink_attribute attribute, const char *string) {
    if (attribute.value == NULL)
        return false;
    size_t length = attribute.length;
    if (length > 0 && attribute.value[length - 1] == '\0')
        length--;
    return length == strlen(string) && memcmp(attribute.value, string, length) == 0;
}
