#include "egress/dns.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HEADER_SIZE 12
#define OPT_SIZE 11 /* without options */
#define NAME_WIRE_MAX 255
#define LABEL_MAX_BYTES 63
#define ERROR_TEXT_MAX 255

#define FLAG_RESPONSE 0x8000
#define FLAG_TRUNCATED 0x0200
#define FLAG_RECURSION_DESIRED 0x0100
#define FLAG_RECURSION_AVAILABLE 0x0080
#define FLAG_CHECKING_DISABLED 0x0010
#define OPCODE(flags) ((flags) >> 11 & 0xf)
#define EDNS_DNSSEC_OK 0x8000
#define OPTION_EXTENDED_ERROR 15

/* What is left to read. */
struct reader {
    const uint8_t *bytes;
    size_t left;
};

static bool read_8(struct reader *reader, uint8_t *value) {
    if (reader->left < 1)
        return false;
    *value = *reader->bytes++;
    reader->left--;
    return true;
}

static bool read_16(struct reader *reader, uint16_t *value) {
    if (reader->left < 2)
        return false;
    *value = (uint16_t)(reader->bytes[0] << 8 | reader->bytes[1]);
    reader->bytes += 2;
    reader->left -= 2;
    return true;
}

static bool skip(struct reader *reader, size_t length) {
    if (reader->left < length)
        return false;
    reader->bytes += length;
    reader->left -= length;
    return true;
}

/* Printable, as zone files have it. Room is always left: DNS_NAME_TEXT_SIZE. */
static size_t byte_write(char *text, uint8_t byte) {
    if (byte > ' ' && byte < 0x7f && byte != '.' && byte != '\\') {
        text[0] = (char)byte;
        return 1;
    }
    return (size_t)snprintf(text, 5, "\\%03u", byte);
}

/* RFC 1035 section 3.1. Nothing comes before the name that a compression pointer could mean, and the other
 * two kinds of labels are reserved (RFC 6891 section 5). `plain` receives the bytes with dots between the
 * labels; *is_plain is false when a label has a dot itself, which is not two labels. */
static bool name_read(struct reader *reader, char *text, char *plain, size_t *plain_length, bool *is_plain) {
    size_t wire = 1, used = 0;
    *plain_length = 0;
    *is_plain = true;
    for (;;) {
        uint8_t label;
        if (!read_8(reader, &label))
            return false;
        if (label == 0)
            break;
        wire += 1u + label;
        if (label > LABEL_MAX_BYTES || wire > NAME_WIRE_MAX || label > reader->left)
            return false;
        if (used > 0) {
            text[used++] = '.';
            plain[(*plain_length)++] = '.';
        }
        for (size_t i = 0; i < label; i++) {
            *is_plain &= reader->bytes[i] != '.';
            used += byte_write(text + used, reader->bytes[i]);
            plain[(*plain_length)++] = (char)reader->bytes[i];
        }
        (void)skip(reader, label);
    }
    if (used == 0)
        text[used++] = '.';
    text[used] = '\0';
    return true;
}

static bool question_read(struct reader *reader, struct dns_query *query) {
    const uint8_t *start = reader->bytes;
    char plain[NAME_WIRE_MAX];
    size_t plain_length;
    bool is_plain;
    if (!name_read(reader, query->name, plain, &plain_length, &is_plain) || !read_16(reader, &query->type) ||
        !read_16(reader, &query->class)) {
        query->name[0] = '\0';
        return false;
    }
    query->question_length = (uint16_t)(reader->bytes - start);
    memcpy(query->question, start, query->question_length);
    query->is_host = is_plain && host_name_normalise(plain, plain_length, query->host);
    return true;
}

static bool options_read(struct reader *reader, size_t length) {
    while (length > 0) {
        uint16_t code, size;
        if (length < 4 || !read_16(reader, &code) || !read_16(reader, &size) || size > length - 4 ||
            !skip(reader, size))
            return false;
        length -= 4u + size;
    }
    return true;
}

/* RFC 6891 section 6.1: the root, OPT, what the client takes, extended code and version, flags, options. */
static bool opt_read(struct reader *reader, struct dns_query *query, enum dns_rcode *rcode) {
    uint8_t root, extended_code, version;
    uint16_t type, size, flags, length;
    if (!read_8(reader, &root) || root != 0 || !read_16(reader, &type) || type != DNS_TYPE_OPT ||
        !read_16(reader, &size) || !read_8(reader, &extended_code) || !read_8(reader, &version) ||
        !read_16(reader, &flags) || !read_16(reader, &length) || length > reader->left)
        return false;
    query->edns = true;
    query->udp_size = size < 512 ? 512 : size;
    query->dnssec_ok = (flags & EDNS_DNSSEC_OK) != 0;
    if (version != 0) {
        *rcode = DNS_BADVERS;
        return false;
    }
    return options_read(reader, length);
}

enum dns_verdict dns_query_parse(const void *bytes, size_t length, struct dns_query *query,
                                 enum dns_rcode *rcode) {
    struct reader reader = {bytes, length};
    uint16_t flags = 0, questions = 0, answers = 0, authorities = 0, additional = 0;
    *query = (struct dns_query){.udp_size = 512};
    *rcode = DNS_FORMERR;
    if (length < HEADER_SIZE)
        return DNS_SILENCE;
    (void)read_16(&reader, &query->id);
    (void)read_16(&reader, &flags);
    (void)read_16(&reader, &questions);
    (void)read_16(&reader, &answers);
    (void)read_16(&reader, &authorities);
    (void)read_16(&reader, &additional);
    if (flags & FLAG_RESPONSE)
        return DNS_SILENCE;
    query->recursion_desired = (flags & FLAG_RECURSION_DESIRED) != 0;
    query->checking_disabled = (flags & FLAG_CHECKING_DISABLED) != 0;
    if (OPCODE(flags) != 0) {
        *rcode = DNS_NOTIMP;
        return DNS_FAULTY;
    }
    if ((flags & FLAG_TRUNCATED) || questions != 1 || answers != 0 || authorities != 0 || additional > 1)
        return DNS_FAULTY;
    if (!question_read(&reader, query) || (additional == 1 && !opt_read(&reader, query, rcode)) ||
        reader.left != 0)
        return DNS_FAULTY;
    *rcode = DNS_NOERROR;
    return DNS_QUESTION;
}

/* Takes one decimal number of 0 ... 255, without leading zeros, and the dot behind it. */
static bool octet_read(const char **text, uint8_t *octet) {
    unsigned value = 0;
    size_t digits = 0;
    for (; **text >= '0' && **text <= '9' && digits < 4; (*text)++, digits++)
        value = value * 10 + (unsigned)(**text - '0');
    if (digits == 0 || value > 255 || (digits > 1 && (*text)[-(long)digits] == '0') || *(*text)++ != '.')
        return false;
    *octet = (uint8_t)value;
    return true;
}

static int nibble(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool dns_query_reverse(const struct dns_query *query, int *family, uint8_t address[16]) {
    const char *text = query->host;
    size_t place = 4;
    while (place > 0 && octet_read(&text, &address[place - 1]))
        place--;
    if (place == 0 && strcmp(text, "in-addr.arpa") == 0) {
        *family = AF_INET;
        return true;
    }
    text = query->host;
    if (strlen(text) != 64 + strlen("ip6.arpa") || strcmp(text + 64, "ip6.arpa") != 0)
        return false;
    for (place = 0; place < 16; place++) {
        const char *pair = text + 4 * (15 - place);
        int low = nibble(pair[0]), high = nibble(pair[2]);
        if (low < 0 || high < 0 || pair[1] != '.' || pair[3] != '.')
            return false;
        address[place] = (uint8_t)(high << 4 | low);
    }
    *family = AF_INET6;
    return true;
}

size_t dns_udp_size(const struct dns_query *query) {
    return query->udp_size > DNS_ANSWER_MAX ? DNS_ANSWER_MAX : query->udp_size;
}

static uint8_t *put_8(uint8_t *out, unsigned value) {
    *out = (uint8_t)value;
    return out + 1;
}

static uint8_t *put_16(uint8_t *out, unsigned value) {
    return put_8(put_8(out, value >> 8), value);
}

static uint8_t *put_32(uint8_t *out, uint32_t value) {
    return put_16(put_16(out, value >> 16), value);
}

static uint8_t *put_bytes(uint8_t *out, const void *bytes, size_t length) {
    memcpy(out, bytes, length);
    return out + length;
}

/* The labels of a name that host_name_normalise has taken. */
static uint8_t *put_name(uint8_t *out, const char *name) {
    while (*name != '\0') {
        size_t label = strcspn(name, ".");
        out = put_bytes(put_8(out, (unsigned)label), name, label);
        name += label;
        name += *name == '.';
    }
    return put_8(out, 0);
}

/* The one record's data: type and length; 0 for none. */
static size_t record_data(const struct dns_answer *answer, enum dns_type *type) {
    if (answer->ipv4 != NULL) {
        *type = DNS_TYPE_A;
        return 4;
    }
    if (answer->ipv6 != NULL) {
        *type = DNS_TYPE_AAAA;
        return 16;
    }
    *type = DNS_TYPE_PTR;
    return answer->pointer != NULL ? strlen(answer->pointer) + 2 : 0;
}

static uint8_t *put_record(uint8_t *out, const struct dns_answer *answer, enum dns_type type, size_t length) {
    out = put_16(out, 0xc000 | HEADER_SIZE); /* the question's name */
    out = put_16(put_16(out, type), DNS_CLASS_IN);
    out = put_16(put_32(out, answer->ttl), (unsigned)length);
    if (type == DNS_TYPE_PTR)
        return put_name(out, answer->pointer);
    return put_bytes(out, type == DNS_TYPE_A ? answer->ipv4 : answer->ipv6, length);
}

/* The OPT record; an extended error of `length` bytes behind its code, or none. */
static uint8_t *put_opt(uint8_t *out, const struct dns_query *query, const struct dns_answer *answer,
                        bool with_error, size_t text_length) {
    out = put_16(put_8(out, 0), DNS_TYPE_OPT);
    out = put_16(out, DNS_ANSWER_MAX);
    out = put_16(out, ((unsigned)answer->rcode >> 4) << 8);
    out = put_16(out, query->dnssec_ok ? EDNS_DNSSEC_OK : 0);
    if (!with_error)
        return put_16(out, 0);
    out = put_16(out, (unsigned)(6 + text_length));
    out = put_16(put_16(out, OPTION_EXTENDED_ERROR), (unsigned)(2 + text_length));
    out = put_16(out, (unsigned)answer->extended_error);
    return text_length > 0 ? put_bytes(out, answer->error_text, text_length) : out;
}

size_t dns_answer_write(const struct dns_query *query, const struct dns_answer *answer, uint8_t *out,
                        size_t size) {
    if (size < HEADER_SIZE)
        return 0;
    size_t left = size - HEADER_SIZE;
    bool with_question = query->question_length > 0 && query->question_length <= left;
    bool truncated = query->question_length > left;
    left -= with_question ? query->question_length : 0;
    bool with_opt = query->edns && left >= OPT_SIZE;
    left -= with_opt ? OPT_SIZE : 0;

    enum dns_type type;
    size_t length = with_question ? record_data(answer, &type) : 0;
    if (length > 0 && 12 + length > left) {
        truncated = true;
        length = 0;
    }
    left -= length > 0 ? 12 + length : 0;

    bool with_error = with_opt && answer->extended_error >= 0 && left >= 6;
    size_t text_length = with_error && answer->error_text != NULL ? strlen(answer->error_text) : 0;
    if (text_length > ERROR_TEXT_MAX || text_length + 6 > left)
        text_length = 0;

    unsigned flags = FLAG_RESPONSE | FLAG_RECURSION_AVAILABLE | (answer->rcode & 0xf);
    flags |= truncated ? FLAG_TRUNCATED : 0;
    flags |= query->recursion_desired ? FLAG_RECURSION_DESIRED : 0;
    flags |= query->checking_disabled ? FLAG_CHECKING_DISABLED : 0;
    uint8_t *at = put_16(put_16(out, query->id), flags);
    at = put_16(put_16(at, with_question), length > 0);
    at = put_16(put_16(at, 0), with_opt);
    if (with_question)
        at = put_bytes(at, query->question, query->question_length);
    if (length > 0)
        at = put_record(at, answer, type, length);
    if (with_opt)
        at = put_opt(at, query, answer, with_error, text_length);
    return (size_t)(at - out);
}

enum dns_stream_verdict dns_stream_feed(struct dns_stream *stream, const uint8_t *bytes, size_t length,
                                        size_t *used) {
    size_t whole = 0;
    *used = 0;
    if (dns_stream_message(stream, &whole) != NULL) /* the one before was taken */
        stream->have = 0;
    for (;;) {
        size_t wanted = 2;
        if (stream->have >= 2) {
            size_t message = (size_t)(stream->bytes[0] << 8 | stream->bytes[1]);
            if (message < HEADER_SIZE || message > DNS_QUERY_MAX)
                return DNS_STREAM_BAD;
            wanted += message;
            if (stream->have == wanted)
                return DNS_STREAM_MESSAGE;
        }
        size_t take = wanted - stream->have;
        if (take > length - *used)
            take = length - *used;
        if (take == 0)
            return DNS_STREAM_MORE;
        memcpy(stream->bytes + stream->have, bytes + *used, take);
        stream->have = (uint16_t)(stream->have + take);
        *used += take;
    }
}

const uint8_t *dns_stream_message(const struct dns_stream *stream, size_t *length) {
    if (stream->have < 2)
        return NULL;
    *length = (size_t)(stream->bytes[0] << 8 | stream->bytes[1]);
    return *length >= HEADER_SIZE && stream->have == 2 + *length ? stream->bytes + 2 : NULL;
}
