#include "egress/hello.h"

#include <string.h>

#define RECORD_HEADER_SIZE 5
#define RECORD_MAX 16384 /* RFC 8446 section 5.1 */
#define ENCRYPTION_MAX 256
#define RECORD_CHANGE_CIPHER_SPEC 20
#define RECORD_ALERT 21
#define RECORD_HANDSHAKE 22
#define RECORD_APPLICATION_DATA 23

#define MESSAGE_HEADER_SIZE 4
#define MESSAGE_CLIENT_HELLO 1
#define MESSAGE_SERVER_HELLO 2
#define RANDOM_SIZE 32

#define EXTENSION_SERVER_NAME 0
#define EXTENSION_ENCRYPTED_CLIENT_HELLO 0xfe0d
#define EXTENSION_ENCRYPTED_SERVER_NAME 0xffce /* its draft of 2018 */
#define SERVER_NAME_HOST 0

/* The parts of a ClientHello in their order: numbers, and runs of bytes of which only the name is kept. */
enum part {
    PART_TYPE,
    PART_LENGTH,
    PART_VERSION,
    PART_RANDOM,
    PART_SESSION_LENGTH,
    PART_SESSION,
    PART_CIPHERS_LENGTH,
    PART_CIPHERS,
    PART_COMPRESSION_LENGTH,
    PART_COMPRESSION,
    PART_EXTENSIONS_LENGTH,
    PART_EXTENSION_TYPE,
    PART_EXTENSION_LENGTH,
    PART_EXTENSION,
    PART_NAMES_LENGTH,
    PART_NAME_TYPE,
    PART_NAME_LENGTH,
    PART_NAME,
    PART_END
};

/* Bytes of a number; 0: a run of bytes, part_left of them. */
static const uint8_t part_widths[] = {
    [PART_TYPE] = 1,
    [PART_LENGTH] = 3,
    [PART_VERSION] = 2,
    [PART_SESSION_LENGTH] = 1,
    [PART_CIPHERS_LENGTH] = 2,
    [PART_COMPRESSION_LENGTH] = 1,
    [PART_NAMES_LENGTH] = 2,
    [PART_EXTENSIONS_LENGTH] = 2,
    [PART_EXTENSION_TYPE] = 2,
    [PART_NAME_TYPE] = 1,
    [PART_NAME_LENGTH] = 2,
    [PART_EXTENSION_LENGTH] = 2,
    [PART_END] = 0,
};

const char *hello_fault_text(enum hello_fault fault) {
    switch (fault) {
    case HELLO_FAULT_NONE:
        break;
    case HELLO_FAULT_NOT_TLS:
        return "the connection does not begin as TLS does";
    case HELLO_FAULT_MALFORMED:
        return "the ClientHello is malformed";
    case HELLO_FAULT_TOO_LONG:
        return "the ClientHello is too long";
    case HELLO_FAULT_NAME:
        return "the server name of the ClientHello is not one host name";
    case HELLO_FAULT_ANOTHER:
        return "the second ClientHello names another server";
    case HELLO_FAULT_ANSWER:
        return "the server does not speak TLS";
    }
    return "no fault";
}

static bool blame(struct hello *hello, enum hello_fault fault) {
    hello->fault = fault;
    if (!hello->named)
        hello->name[0] = '\0'; /* half a name, as it came */
    return false;
}

/* Begins a run of `length` bytes, which has to lie within the message. */
static bool run_begin(struct hello *hello, enum part part, uint32_t length) {
    if (length > hello->message_left)
        return blame(hello, HELLO_FAULT_MALFORMED);
    hello->state = (uint8_t)part;
    hello->part_left = length;
    return true;
}

static void extension_end(struct hello *hello) {
    hello->state = hello->message_left == 0 ? PART_END : PART_EXTENSION_TYPE;
}

/* RFC 6066 section 3: a list, in which there may be one name of a kind, and one kind is known. `length` of
 * the list was found to fill the extension. */
static bool name_begin(struct hello *hello, uint32_t length) {
    if (length == 0 || length > hello->part_left)
        return blame(hello, HELLO_FAULT_MALFORMED);
    if (length < hello->part_left || length > HOST_NAME_SIZE - 1)
        return blame(hello, HELLO_FAULT_NAME);
    hello->name_length = 0;
    return run_begin(hello, PART_NAME, length);
}

static bool name_end(struct hello *hello) {
    char given[HOST_NAME_SIZE];
    memcpy(given, hello->name, hello->name_length);
    /* The last dot, which is part of no name here, is one that servers differ about. */
    if (given[hello->name_length - 1] == '.' ||
        !host_name_normalise(given, hello->name_length, hello->name)) {
        hello->name[0] = '\0';
        return blame(hello, HELLO_FAULT_NAME);
    }
    hello->named = true;
    extension_end(hello);
    return true;
}

static bool extension_begin(struct hello *hello, uint32_t length) {
    if (length > hello->message_left)
        return blame(hello, HELLO_FAULT_MALFORMED);
    hello->encrypted |= hello->extension_type == EXTENSION_ENCRYPTED_CLIENT_HELLO ||
                        hello->extension_type == EXTENSION_ENCRYPTED_SERVER_NAME;
    if (hello->extension_type == EXTENSION_SERVER_NAME) {
        if (hello->named)
            return blame(hello, HELLO_FAULT_NAME);
        hello->part_left = length;
        hello->state = PART_NAMES_LENGTH;
        return length >= 2 || blame(hello, HELLO_FAULT_MALFORMED);
    }
    if (length > 0)
        return run_begin(hello, PART_EXTENSION, length);
    extension_end(hello);
    return true;
}

/* A number is whole: what it means for what follows. */
static bool number_end(struct hello *hello, uint32_t value) {
    switch ((enum part)hello->state) {
    case PART_TYPE:
        hello->state = PART_LENGTH;
        return value == MESSAGE_CLIENT_HELLO || blame(hello, HELLO_FAULT_MALFORMED);
    case PART_LENGTH:
        hello->message_left = value;
        hello->state = PART_VERSION;
        return value <= HELLO_MAX - RECORD_HEADER_SIZE - MESSAGE_HEADER_SIZE ||
               blame(hello, HELLO_FAULT_TOO_LONG);
    case PART_VERSION:
        hello->version = (uint16_t)value;
        if (value < 0x0301 || value > 0x0304)
            return blame(hello, HELLO_FAULT_NOT_TLS);
        return run_begin(hello, PART_RANDOM, RANDOM_SIZE);
    case PART_SESSION_LENGTH:
        if (value > 32)
            return blame(hello, HELLO_FAULT_MALFORMED);
        hello->state = PART_CIPHERS_LENGTH;
        return value == 0 || run_begin(hello, PART_SESSION, value);
    case PART_CIPHERS_LENGTH:
        if (value == 0 || value % 2 != 0)
            return blame(hello, HELLO_FAULT_MALFORMED);
        return run_begin(hello, PART_CIPHERS, value);
    case PART_COMPRESSION_LENGTH:
        return value == 0 ? blame(hello, HELLO_FAULT_MALFORMED) : run_begin(hello, PART_COMPRESSION, value);
    case PART_EXTENSIONS_LENGTH:
        extension_end(hello);
        return value == hello->message_left || blame(hello, HELLO_FAULT_MALFORMED);
    case PART_EXTENSION_TYPE:
        hello->extension_type = (uint16_t)value;
        hello->state = PART_EXTENSION_LENGTH;
        return true;
    case PART_EXTENSION_LENGTH:
        return extension_begin(hello, value);
    case PART_NAMES_LENGTH:
        hello->part_left -= 2;
        hello->state = PART_NAME_TYPE;
        return (value == hello->part_left && value >= 3) || blame(hello, HELLO_FAULT_MALFORMED);
    case PART_NAME_TYPE:
        hello->part_left -= 1;
        hello->state = PART_NAME_LENGTH;
        return value == SERVER_NAME_HOST || blame(hello, HELLO_FAULT_NAME);
    case PART_NAME_LENGTH:
        hello->part_left -= 2;
        return name_begin(hello, value);
    default:
        return blame(hello, HELLO_FAULT_MALFORMED);
    }
}

/* A run of bytes is over: what follows. */
static bool run_end(struct hello *hello) {
    switch ((enum part)hello->state) {
    case PART_RANDOM:
        hello->state = PART_SESSION_LENGTH;
        return true;
    case PART_SESSION:
        hello->state = PART_CIPHERS_LENGTH;
        return true;
    case PART_CIPHERS:
        hello->state = PART_COMPRESSION_LENGTH;
        return true;
    case PART_COMPRESSION: /* extensions may be left out altogether: RFC 5246 */
        hello->state = hello->message_left == 0 ? PART_END : PART_EXTENSIONS_LENGTH;
        return true;
    case PART_EXTENSION:
        extension_end(hello);
        return true;
    case PART_NAME:
        return name_end(hello);
    default:
        return blame(hello, HELLO_FAULT_MALFORMED);
    }
}

/* One step in the message: at least one byte of `length`, which are not 0. Returns how many, 0 after a fault.
 */
static size_t message_step(struct hello *hello, const uint8_t *bytes, size_t length) {
    uint8_t width = part_widths[hello->state];
    bool counted = hello->state > PART_LENGTH;
    if (counted && hello->message_left == 0)
        return blame(hello, HELLO_FAULT_MALFORMED);
    if (width > 0) {
        hello->value = hello->step == 0 ? bytes[0] : hello->value << 8 | bytes[0];
        hello->message_left -= counted;
        if (++hello->step < width)
            return 1;
        hello->step = 0;
        return number_end(hello, hello->value);
    }
    size_t take = length < hello->part_left ? length : hello->part_left;
    if (hello->state == PART_NAME) {
        memcpy(hello->name + hello->name_length, bytes, take);
        hello->name_length = (uint8_t)(hello->name_length + take);
    }
    hello->part_left -= (uint32_t)take;
    hello->message_left -= (uint32_t)take;
    return hello->part_left > 0 || run_end(hello) ? take : 0;
}

/* Before the second ClientHello may come what tells old middleboxes a tale, and early data that the server
 * has refused. */
static bool is_skipped(const struct hello *hello) {
    return hello->second && hello->state == PART_TYPE &&
           (hello->record_type == RECORD_CHANGE_CIPHER_SPEC || hello->record_type == RECORD_APPLICATION_DATA);
}

static bool header_byte(struct hello *hello, uint8_t byte) {
    switch (hello->header_length++) {
    case 0:
        hello->record_type = byte;
        if (byte == RECORD_HANDSHAKE || is_skipped(hello))
            return true;
        return blame(hello,
                     hello->taken == 0 && !hello->second ? HELLO_FAULT_NOT_TLS : HELLO_FAULT_MALFORMED);
    case 1:
        return byte == 3 || blame(hello, HELLO_FAULT_NOT_TLS);
    case 2:
        return byte <= 4 || blame(hello, HELLO_FAULT_NOT_TLS);
    case 3:
        hello->record_left = (uint16_t)(byte << 8);
        return true;
    default:
        hello->record_left |= byte;
        /* An empty one is forbidden (RFC 8446 section 5.1); an encrypted one may be longer. */
        return (hello->record_left > 0 &&
                hello->record_left <=
                    RECORD_MAX + (hello->record_type == RECORD_APPLICATION_DATA ? ENCRYPTION_MAX : 0)) ||
               blame(hello, HELLO_FAULT_MALFORMED);
    }
}

/* At least one byte of `length`, which are not 0; 0 after a fault. */
static size_t stream_step(struct hello *hello, const uint8_t *bytes, size_t length) {
    if (hello->header_length < RECORD_HEADER_SIZE)
        return header_byte(hello, bytes[0]);
    size_t take = length < hello->record_left ? length : hello->record_left;
    if (!is_skipped(hello))
        take = message_step(hello, bytes, take);
    hello->record_left = (uint16_t)(hello->record_left - take);
    if (hello->record_left == 0)
        hello->header_length = 0;
    return take;
}

static enum hello_verdict hello_end(struct hello *hello) {
    /* What follows in the same record was not judged. */
    if (hello->header_length != 0) {
        hello->fault = HELLO_FAULT_MALFORMED;
        return HELLO_BAD;
    }
    if (hello->second && (hello->named != hello->first_named || strcmp(hello->name, hello->first) != 0)) {
        hello->fault = HELLO_FAULT_ANOTHER;
        return HELLO_BAD;
    }
    return HELLO_DONE;
}

enum hello_verdict hello_feed(struct hello *hello, const uint8_t *bytes, size_t length, size_t *used) {
    *used = 0;
    if (hello->fault != HELLO_FAULT_NONE)
        return HELLO_BAD;
    while (*used < length && hello->state != PART_END) {
        size_t left = HELLO_MAX - hello->taken;
        if (left > length - *used)
            left = length - *used;
        size_t step = left > 0 ? stream_step(hello, bytes + *used, left) : blame(hello, HELLO_FAULT_TOO_LONG);
        if (step == 0)
            return HELLO_BAD;
        hello->taken += (uint32_t)step;
        *used += step;
    }
    return hello->state == PART_END ? hello_end(hello) : HELLO_NEED_MORE;
}

/* RFC 8446 section 4.1.3: the random of a HelloRetryRequest is the SHA-256 of that word. */
static const uint8_t retry_random[RANDOM_SIZE] = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

static void retry_begin(struct hello *hello) {
    struct hello next = {.second = true, .first_named = hello->named};
    memcpy(next.first, hello->name, sizeof next.first);
    *hello = next;
}

#define ANSWER_RANDOM_AT (MESSAGE_HEADER_SIZE + 2)

/* A byte of the ServerHello: type, length (3), version (2), random. */
static enum hello_verdict answer_byte(struct hello *hello, uint8_t byte) {
    unsigned at = hello->step++;
    if (at == 0 && byte != MESSAGE_SERVER_HELLO)
        return HELLO_BAD;
    if (at < ANSWER_RANDOM_AT)
        return HELLO_NEED_MORE;
    if (byte != retry_random[at - ANSWER_RANDOM_AT] || hello->second)
        return HELLO_DONE;
    return at == ANSWER_RANDOM_AT + RANDOM_SIZE - 1 ? HELLO_RETRY : HELLO_NEED_MORE;
}

/* Old servers warn that they do not know the name, and go on; after a fatal alert nothing comes. */
static enum hello_verdict answer_header_byte(struct hello *hello, uint8_t byte) {
    switch (hello->header_length++) {
    case 0:
        hello->record_type = byte;
        return byte == RECORD_HANDSHAKE || (byte == RECORD_ALERT && hello->step == 0) ? HELLO_NEED_MORE
                                                                                      : HELLO_BAD;
    case 1:
        return byte == 3 ? HELLO_NEED_MORE : HELLO_BAD;
    case 2:
        return byte <= 4 ? HELLO_NEED_MORE : HELLO_BAD;
    case 3:
        hello->record_left = (uint16_t)(byte << 8);
        return HELLO_NEED_MORE;
    default:
        hello->record_left |= byte;
        return hello->record_left > 0 && hello->record_left <= RECORD_MAX ? HELLO_NEED_MORE : HELLO_BAD;
    }
}

enum hello_verdict hello_answer_feed(struct hello *hello, const uint8_t *bytes, size_t length) {
    if (hello->fault != HELLO_FAULT_NONE)
        return HELLO_BAD;
    if (hello->state == PART_END) {
        hello->state = PART_TYPE; /* the reader's parts serve for the answer now */
        hello->step = 0;
    }
    enum hello_verdict verdict = HELLO_NEED_MORE;
    for (size_t i = 0; i < length && verdict == HELLO_NEED_MORE; i++) {
        if (hello->header_length < RECORD_HEADER_SIZE) {
            verdict = answer_header_byte(hello, bytes[i]);
            continue;
        }
        if (hello->record_type == RECORD_HANDSHAKE)
            verdict = answer_byte(hello, bytes[i]);
        if (--hello->record_left == 0)
            hello->header_length = 0;
    }
    if (verdict == HELLO_RETRY)
        retry_begin(hello);
    if (verdict == HELLO_BAD)
        hello->fault = HELLO_FAULT_ANSWER;
    return verdict;
}

void hello_alert_write(const struct hello *hello, enum hello_alert alert, uint8_t out[HELLO_ALERT_SIZE]) {
    uint16_t version = hello->version >= 0x0301 && hello->version <= 0x0303 ? hello->version : 0x0303;
    const uint8_t bytes[HELLO_ALERT_SIZE] = {RECORD_ALERT,  (uint8_t)(version >> 8), (uint8_t)version, 0, 2,
                                             2 /* fatal */, (uint8_t)alert};
    memcpy(out, bytes, sizeof bytes);
}

enum hello_alert hello_alert_for(enum hello_fault fault) {
    switch (fault) {
    case HELLO_FAULT_NONE:
    case HELLO_FAULT_NAME:
    case HELLO_FAULT_ANOTHER:
        return HELLO_ALERT_UNRECOGNIZED_NAME;
    case HELLO_FAULT_ANSWER:
        return HELLO_ALERT_ACCESS_DENIED;
    default:
        return HELLO_ALERT_DECODE_ERROR;
    }
}
