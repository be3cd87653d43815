#include "egress/http.h"

#include <stdio.h>
#include <string.h>

#define CHUNK_LINE_MAX 4096
#define LENGTH_DIGITS_MAX 18 /* of a body, decimal: less than 2^63 */
#define CHUNK_DIGITS_MAX 15  /* of a chunk, hexadecimal */
#define PORT_DEFAULT 80

enum state {
    STATE_START, /* between two requests */
    STATE_START_LF,
    STATE_METHOD,
    STATE_TARGET_START,
    STATE_SCHEME,
    STATE_AUTHORITY,
    STATE_PATH,
    STATE_ASTERISK,
    STATE_VERSION,
    STATE_REQUEST_LF,
    STATE_FIELD_START,
    STATE_FIELD_NAME,
    STATE_FIELD_VALUE,
    STATE_FIELD_LF,
    STATE_HEAD_LF,
    STATE_BODY,
    STATE_CHUNK_SIZE,
    STATE_CHUNK_EXTENSION,
    STATE_CHUNK_LF,
    STATE_CHUNK_DATA,
    STATE_CHUNK_END_CR,
    STATE_CHUNK_END_LF
};

enum field {
    FIELD_OTHER,
    FIELD_HOST,
    FIELD_LENGTH,
    FIELD_CODING,
    FIELD_UPGRADE,
    FIELD_LOOK_ALIKE /* gateways make one variable of '-' and '_' */
};

static const struct {
    const char *name;
    enum field field;
} fields[] = {
    {"host", FIELD_HOST},       {"content-length", FIELD_LENGTH},     {"transfer-encoding", FIELD_CODING},
    {"upgrade", FIELD_UPGRADE}, {"content_length", FIELD_LOOK_ALIKE}, {"transfer_encoding", FIELD_LOOK_ALIKE},
};

const char *http_fault_text(enum http_fault fault) {
    switch (fault) {
    case HTTP_FAULT_NONE:
        break;
    case HTTP_FAULT_NOT_HTTP:
        return "the connection does not speak HTTP/1.0 or HTTP/1.1";
    case HTTP_FAULT_HTTP2:
        return "HTTP/2 without TLS is not let through";
    case HTTP_FAULT_CONNECT:
        return "the method CONNECT is not let through";
    case HTTP_FAULT_UPGRADE:
        return "an upgrade to another protocol is not let through";
    case HTTP_FAULT_TARGET:
        return "the request's target is malformed";
    case HTTP_FAULT_HOST:
        return "the request has no Host, two, or one that is not a host name";
    case HTTP_FAULT_AUTHORITY:
        return "the request's target names another host than its Host";
    case HTTP_FAULT_FRAMING:
        return "the length of the request's body can be read in two ways";
    case HTTP_FAULT_LINE:
        return "the request has a line that is malformed";
    case HTTP_FAULT_TOO_LONG:
        return "the request's head is too long";
    }
    return "no fault";
}

static bool blame(struct http_reader *reader, enum http_fault fault) {
    reader->fault = fault;
    return false;
}

static bool go(struct http_reader *reader, enum state state) {
    reader->state = (uint8_t)state;
    return true;
}

static char lower(uint8_t byte) {
    return (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
}

static bool is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_blank(uint8_t byte) {
    return byte == ' ' || byte == '\t';
}

static bool is_control(uint8_t byte) {
    return byte < ' ' || byte == 0x7f;
}

/* RFC 9110 section 5.6.2. */
static bool is_token_byte(uint8_t byte) {
    return is_digit(byte) || (lower(byte) >= 'a' && lower(byte) <= 'z') ||
           (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

/* False: longer than any word that means something here. */
static bool word_add(struct http_reader *reader, char byte) {
    if (reader->word_length >= sizeof reader->word - 1)
        return false;
    reader->word[reader->word_length++] = byte;
    reader->word[reader->word_length] = '\0';
    return true;
}

static void word_clear(struct http_reader *reader) {
    reader->word_length = 0;
    reader->word[0] = '\0';
}

/* -- a host and perhaps a port: of Host, or of an absolute-form target -- */

static void place_begin(struct http_reader *reader) {
    reader->name_length = 0;
    reader->port_digits = 0;
}

static bool place_byte(struct http_reader *reader, char name[HOST_NAME_SIZE], uint16_t *port, uint8_t byte) {
    if (reader->port_digits == 0 && byte == ':') {
        reader->port_digits = 1;
        return true;
    }
    if (reader->port_digits == 0) {
        if (reader->name_length == HOST_NAME_SIZE - 1)
            return false;
        name[reader->name_length++] = byte > ' ' && byte < 0x7f ? (char)byte : '?';
        name[reader->name_length] = '\0';
        return true;
    }
    unsigned value = *port * 10u + byte - '0';
    if (!is_digit(byte) || value == 0 || value > 65535) /* no leading zero */
        return false;
    *port = (uint16_t)value;
    reader->port_digits++;
    return true;
}

/* A name of 253 bytes has no room for a last dot, and needs none. */
static bool place_end(struct http_reader *reader, char name[HOST_NAME_SIZE]) {
    char given[HOST_NAME_SIZE];
    memcpy(given, name, HOST_NAME_SIZE);
    if (reader->port_digits == 1)
        return false;
    if (host_name_normalise(given, reader->name_length, name))
        return true;
    memcpy(name, given, HOST_NAME_SIZE); /* for the record */
    return false;
}

/* -- the request line -- */

static void head_begin(struct http_reader *reader) {
    struct http_reader next = {.requests = reader->requests, .taken = reader->taken};
    *reader = next;
}

static bool start_byte(struct http_reader *reader, uint8_t byte) {
    if (!reader->skipped)
        reader->taken = 1;
    /* RFC 9112 section 2.2: old clients end a body with a line of their own. */
    if (byte == '\r' && !reader->skipped)
        return go(reader, STATE_START_LF);
    if (!is_token_byte(byte))
        return blame(reader, HTTP_FAULT_NOT_HTTP);
    head_begin(reader);
    reader->method[reader->name_length++] = (char)byte;
    return go(reader, STATE_METHOD);
}

static bool method_byte(struct http_reader *reader, uint8_t byte) {
    if (byte == ' ') {
        static const char connect[] = "connect";
        size_t same = 0;
        while (same < reader->name_length && lower((uint8_t)reader->method[same]) == connect[same])
            same++;
        if (same == sizeof connect - 1 && reader->name_length == same)
            return blame(reader, HTTP_FAULT_CONNECT);
        if (strcmp(reader->method, "PRI") == 0)
            return blame(reader, HTTP_FAULT_HTTP2);
        return go(reader, STATE_TARGET_START);
    }
    if (!is_token_byte(byte) || reader->name_length == HTTP_METHOD_SIZE - 1)
        return blame(reader, HTTP_FAULT_NOT_HTTP);
    reader->method[reader->name_length++] = (char)byte;
    return true;
}

static bool target_start_byte(struct http_reader *reader, uint8_t byte) {
    if (byte == '/')
        return go(reader, STATE_PATH);
    if (byte == '*')
        return strcmp(reader->method, "OPTIONS") == 0 ? go(reader, STATE_ASTERISK)
                                                      : blame(reader, HTTP_FAULT_TARGET);
    return (lower(byte) == 'h' && word_add(reader, 'h')) ? go(reader, STATE_SCHEME)
                                                         : blame(reader, HTTP_FAULT_TARGET);
}

static bool scheme_byte(struct http_reader *reader, uint8_t byte) {
    static const char scheme[] = "http://";
    if (lower(byte) != scheme[reader->word_length] || !word_add(reader, lower(byte)))
        return blame(reader, HTTP_FAULT_TARGET);
    if (scheme[reader->word_length] != '\0')
        return true;
    place_begin(reader);
    reader->has_authority = true;
    return go(reader, STATE_AUTHORITY);
}

static bool target_end(struct http_reader *reader) {
    word_clear(reader);
    return go(reader, STATE_VERSION);
}

static bool authority_byte(struct http_reader *reader, uint8_t byte) {
    if (byte != '/' && byte != '?' && byte != ' ')
        return (!is_control(byte) && place_byte(reader, reader->authority, &reader->authority_port, byte)) ||
               blame(reader, HTTP_FAULT_TARGET);
    if (!place_end(reader, reader->authority))
        return blame(reader, HTTP_FAULT_TARGET);
    return byte == ' ' ? target_end(reader) : go(reader, STATE_PATH);
}

static bool path_byte(struct http_reader *reader, uint8_t byte) {
    if (byte == ' ')
        return target_end(reader);
    if (byte == '\r' || byte == '\n') /* HTTP/0.9 */
        return blame(reader, HTTP_FAULT_NOT_HTTP);
    return !is_control(byte) || blame(reader, HTTP_FAULT_LINE);
}

static bool version_byte(struct http_reader *reader, uint8_t byte) {
    static const char version[] = "HTTP/1.";
    size_t at = reader->word_length;
    if (at < sizeof version - 1)
        return (byte == (uint8_t)version[at] && word_add(reader, (char)byte)) ||
               blame(reader, HTTP_FAULT_NOT_HTTP);
    if (at == sizeof version - 1) {
        reader->minor = (uint8_t)(byte - '0');
        return (reader->minor <= 1 && word_add(reader, (char)byte)) || blame(reader, HTTP_FAULT_NOT_HTTP);
    }
    return byte == '\r' ? go(reader, STATE_REQUEST_LF) : blame(reader, HTTP_FAULT_LINE);
}

/* -- fields -- */

static bool field_start_byte(struct http_reader *reader, uint8_t byte) {
    if (byte == '\r')
        return go(reader, STATE_HEAD_LF);
    if (!is_token_byte(byte)) /* a blank: the line before goes on, which not every server sees so */
        return blame(reader, HTTP_FAULT_LINE);
    word_clear(reader);
    (void)word_add(reader, lower(byte));
    return go(reader, STATE_FIELD_NAME);
}

static enum field field_find(const struct http_reader *reader) {
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(reader->word, fields[i].name) == 0)
            return fields[i].field;
    return FIELD_OTHER;
}

/* What may stand once. */
static bool field_begin(struct http_reader *reader) {
    reader->field = (uint8_t)field_find(reader);
    reader->value_begun = reader->blank_after = false;
    word_clear(reader);
    if (reader->trailers && reader->field != FIELD_OTHER)
        return blame(reader, HTTP_FAULT_FRAMING);
    switch ((enum field)reader->field) {
    case FIELD_HOST:
        if (reader->has_host)
            return blame(reader, HTTP_FAULT_HOST);
        place_begin(reader);
        break;
    case FIELD_LENGTH:
        if (reader->has_length)
            return blame(reader, HTTP_FAULT_FRAMING);
        break;
    case FIELD_CODING:
        if (reader->has_coding)
            return blame(reader, HTTP_FAULT_FRAMING);
        break;
    case FIELD_LOOK_ALIKE:
        return blame(reader, HTTP_FAULT_FRAMING);
    default:
        break;
    }
    return go(reader, STATE_FIELD_VALUE);
}

static bool field_name_byte(struct http_reader *reader, uint8_t byte) {
    if (byte == ':')
        return field_begin(reader);
    if (!is_token_byte(byte))
        return blame(reader, HTTP_FAULT_LINE);
    if (!word_add(reader, lower(byte)))
        reader->word[0] = '\0'; /* longer than any that matters; word_length stays at its end */
    return true;
}

/* A byte of a value that matters, without the blanks around it. */
static bool value_byte(struct http_reader *reader, uint8_t *byte) {
    switch ((enum field)reader->field) {
    case FIELD_HOST:
        return place_byte(reader, reader->host, &reader->host_port, *byte) || blame(reader, HTTP_FAULT_HOST);
    case FIELD_LENGTH:
        if (!is_digit(*byte) || reader->word_length == LENGTH_DIGITS_MAX)
            return blame(reader, HTTP_FAULT_FRAMING);
        reader->body_left = reader->body_left * 10 + *byte - '0';
        return word_add(reader, (char)*byte);
    case FIELD_CODING:
        return word_add(reader, lower(*byte)) || blame(reader, HTTP_FAULT_FRAMING);
    default:
        if (!word_add(reader, lower(*byte)))
            return blame(reader, HTTP_FAULT_UPGRADE);
        *byte = '-'; /* no server knows this protocol: each goes on with HTTP/1.1 */
        return true;
    }
}

/* Blanks inside of a value that matters are part of no such value. */
static bool field_value_byte(struct http_reader *reader, uint8_t *byte) {
    static const enum http_fault faults[] = {[FIELD_HOST] = HTTP_FAULT_HOST,
                                             [FIELD_LENGTH] = HTTP_FAULT_FRAMING,
                                             [FIELD_CODING] = HTTP_FAULT_FRAMING,
                                             [FIELD_UPGRADE] = HTTP_FAULT_UPGRADE};
    if (*byte == '\r')
        return go(reader, STATE_FIELD_LF);
    if (is_blank(*byte)) {
        reader->blank_after = reader->value_begun;
        return true;
    }
    if (is_control(*byte))
        return blame(reader, HTTP_FAULT_LINE);
    if (reader->field == FIELD_OTHER)
        return true;
    if (reader->blank_after)
        return blame(reader, faults[reader->field]);
    reader->value_begun = true;
    return value_byte(reader, byte);
}

static bool field_end(struct http_reader *reader) {
    switch ((enum field)reader->field) {
    case FIELD_HOST:
        if (!place_end(reader, reader->host))
            return blame(reader, HTTP_FAULT_HOST);
        reader->has_host = true;
        break;
    case FIELD_LENGTH:
        if (!reader->value_begun)
            return blame(reader, HTTP_FAULT_FRAMING);
        reader->has_length = true;
        break;
    case FIELD_CODING:
        if (strcmp(reader->word, "chunked") != 0)
            return blame(reader, HTTP_FAULT_FRAMING);
        reader->has_coding = true;
        break;
    case FIELD_UPGRADE:
        if (strcmp(reader->word, "h2c") != 0)
            return blame(reader, HTTP_FAULT_UPGRADE);
        break;
    default:
        break;
    }
    return go(reader, STATE_FIELD_START);
}

static uint16_t port_or_default(uint16_t port) {
    return port != 0 ? port : PORT_DEFAULT;
}

static void chunk_begin(struct http_reader *reader) {
    reader->taken = 0;
    reader->body_left = 0;
    word_clear(reader);
    (void)go(reader, STATE_CHUNK_SIZE);
}

/* The blank line: the head is whole. */
static bool head_end(struct http_reader *reader) {
    if (!reader->has_host && (reader->minor == 1 || reader->has_authority))
        return blame(reader, HTTP_FAULT_HOST);
    if (reader->has_authority &&
        (strcmp(reader->authority, reader->host) != 0 ||
         port_or_default(reader->authority_port) != port_or_default(reader->host_port)))
        return blame(reader, HTTP_FAULT_AUTHORITY);
    if (reader->has_coding && (reader->has_length || reader->minor == 0))
        return blame(reader, HTTP_FAULT_FRAMING);
    reader->requests++;
    if (reader->has_coding)
        chunk_begin(reader);
    else
        (void)go(reader, reader->body_left > 0 ? STATE_BODY : STATE_START);
    return true;
}

/* -- bodies -- */

static int hexadecimal(uint8_t byte) {
    if (is_digit(byte))
        return byte - '0';
    char letter = lower(byte);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

static bool chunk_size_byte(struct http_reader *reader, uint8_t byte) {
    int digit = hexadecimal(byte);
    if (digit >= 0 && reader->word_length < CHUNK_DIGITS_MAX) {
        reader->body_left = reader->body_left << 4 | (uint64_t)digit;
        return word_add(reader, (char)byte);
    }
    if (reader->word_length == 0 || (byte != ';' && byte != '\r'))
        return blame(reader, HTTP_FAULT_FRAMING);
    return go(reader, byte == ';' ? STATE_CHUNK_EXTENSION : STATE_CHUNK_LF);
}

static bool chunk_extension_byte(struct http_reader *reader, uint8_t byte) {
    if (byte == '\r')
        return go(reader, STATE_CHUNK_LF);
    return !is_control(byte) || byte == '\t' || blame(reader, HTTP_FAULT_LINE);
}

static bool chunk_line_end(struct http_reader *reader) {
    if (reader->body_left > 0)
        return go(reader, STATE_CHUNK_DATA);
    reader->trailers = true;
    reader->taken = 0;
    return go(reader, STATE_FIELD_START);
}

/* A byte of what is read in lines; a LF that ends one is the only one. */
static bool line_byte(struct http_reader *reader, uint8_t *byte) {
    switch ((enum state)reader->state) {
    case STATE_START:
        return start_byte(reader, *byte);
    case STATE_START_LF:
        reader->skipped = true;
        return *byte == '\n' ? go(reader, STATE_START) : blame(reader, HTTP_FAULT_LINE);
    case STATE_METHOD:
        return method_byte(reader, *byte);
    case STATE_TARGET_START:
        return target_start_byte(reader, *byte);
    case STATE_SCHEME:
        return scheme_byte(reader, *byte);
    case STATE_AUTHORITY:
        return authority_byte(reader, *byte);
    case STATE_PATH:
        return path_byte(reader, *byte);
    case STATE_ASTERISK:
        return *byte == ' ' ? target_end(reader) : blame(reader, HTTP_FAULT_TARGET);
    case STATE_VERSION:
        return version_byte(reader, *byte);
    case STATE_REQUEST_LF:
        return *byte == '\n' ? go(reader, STATE_FIELD_START) : blame(reader, HTTP_FAULT_LINE);
    case STATE_FIELD_START:
        return field_start_byte(reader, *byte);
    case STATE_FIELD_NAME:
        return field_name_byte(reader, *byte);
    case STATE_FIELD_VALUE:
        return field_value_byte(reader, byte);
    case STATE_FIELD_LF:
        return *byte == '\n' ? field_end(reader) : blame(reader, HTTP_FAULT_LINE);
    case STATE_CHUNK_SIZE:
        return chunk_size_byte(reader, *byte);
    case STATE_CHUNK_EXTENSION:
        return chunk_extension_byte(reader, *byte);
    case STATE_CHUNK_LF:
        return *byte == '\n' ? chunk_line_end(reader) : blame(reader, HTTP_FAULT_LINE);
    case STATE_CHUNK_END_CR:
        return *byte == '\r' ? go(reader, STATE_CHUNK_END_LF) : blame(reader, HTTP_FAULT_FRAMING);
    default:
        return blame(reader, HTTP_FAULT_LINE);
    }
}

/* Bytes of a body or a chunk, which are not looked at. */
static size_t data_take(struct http_reader *reader, size_t length) {
    size_t take = length < reader->body_left ? length : (size_t)reader->body_left;
    reader->body_left -= take;
    if (reader->body_left == 0)
        (void)go(reader, reader->state == STATE_BODY ? STATE_START : STATE_CHUNK_END_CR);
    return take;
}

/* The LF of a blank line, which ends the head or the trailers; of a chunk, after which the next one's line
 * may come much later. */
static enum http_verdict end_byte(struct http_reader *reader, uint8_t byte) {
    if (byte != '\n') {
        (void)blame(reader, HTTP_FAULT_LINE);
        return HTTP_BAD;
    }
    if (reader->state == STATE_CHUNK_END_LF) {
        chunk_begin(reader);
        return HTTP_BODY;
    }
    if (reader->trailers) {
        reader->trailers = false;
        (void)go(reader, STATE_START);
        return HTTP_BODY;
    }
    return head_end(reader) ? HTTP_REQUEST : HTTP_BAD;
}

/* A byte more of what has to be held until it ends. */
static bool is_too_long(struct http_reader *reader) {
    bool chunk = reader->state == STATE_CHUNK_SIZE || reader->state == STATE_CHUNK_EXTENSION;
    reader->taken++;
    return reader->state != STATE_START && reader->taken > (chunk ? CHUNK_LINE_MAX : HTTP_HEAD_MAX);
}

enum http_verdict http_feed(struct http_reader *reader, uint8_t *bytes, size_t length, size_t *used) {
    *used = 0;
    if (reader->fault != HTTP_FAULT_NONE)
        return HTTP_BAD;
    while (*used < length) {
        if (reader->state == STATE_BODY || reader->state == STATE_CHUNK_DATA) {
            *used += data_take(reader, length - *used);
            return HTTP_BODY;
        }
        if (is_too_long(reader)) {
            (void)blame(reader, HTTP_FAULT_TOO_LONG);
            return HTTP_BAD;
        }
        if (reader->state == STATE_HEAD_LF || reader->state == STATE_CHUNK_END_LF)
            return end_byte(reader, bytes[(*used)++]);
        if (!line_byte(reader, &bytes[*used]))
            return HTTP_BAD;
        (*used)++;
    }
    return HTTP_NEED_MORE;
}

bool http_is_between(const struct http_reader *reader) {
    return reader->state == STATE_START && reader->fault == HTTP_FAULT_NONE;
}

bool http_host_is(const struct http_reader *reader, const char *name, uint16_t port) {
    return reader->has_host && reader->fault == HTTP_FAULT_NONE && strcmp(reader->host, name) == 0 &&
           port_or_default(reader->host_port) == port;
}

size_t http_refusal_write(const char *text, char *out, size_t size) {
    size_t length = strnlen(text, HTTP_REFUSAL_SIZE / 2);
    int written = snprintf(out, size,
                           "HTTP/1.1 403 Forbidden\r\n"
                           "Content-Type: text/plain; charset=utf-8\r\n"
                           "Content-Length: %zu\r\n"
                           "Cache-Control: no-store\r\n"
                           "Connection: close\r\n"
                           "\r\n"
                           "%.*s\n",
                           length + 1, (int)length, text);
    return written > 0 && (size_t)written < size ? (size_t)written : 0;
}
