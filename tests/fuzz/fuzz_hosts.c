/* match_host against an oracle that is slow and obviously right: lines and what is asked are made of the
 * fuzzer's bytes as structures, the oracle compares those label by label and bit by bit, and match_host gets
 * them as text. */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "policy/match_host.h"

#define LINES_MAX 4
#define LABELS_MAX 4

struct bytes {
    const uint8_t *at;
    size_t left;
};

static unsigned next(struct bytes *bytes) {
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->at++;
}

struct thing {
    bool address, below, private;
    int family;
    unsigned bits, prefix;
    uint8_t octets[16];
    size_t labels;
    const char *label[LABELS_MAX];
    unsigned ports; /* set of port_numbers; 0: the usual two */
};

static const unsigned port_numbers[] = {80, 443, 22, 5432};

static void thing_read(struct bytes *bytes, bool line, struct thing *out) {
    static const char *const words[] = {"a", "b", "A", "example", "xa", "org", "a-b", "1a"};
    /* First octets around the edges of what is special. */
    static const uint8_t starts[] = {0,   10,  11,  100, 127, 169, 172, 192,
                                     198, 203, 223, 224, 239, 240, 255, 168};
    unsigned flags = next(bytes);
    *out = (struct thing){.address = flags & 1, .below = line && (flags & 2), .private = line && (flags & 4)};
    out->ports = line ? flags >> 4 : 0;
    if (!out->address) {
        out->labels = 1 + next(bytes) % LABELS_MAX;
        for (size_t i = 0; i < out->labels; i++)
            out->label[i] = words[next(bytes) % (sizeof words / sizeof *words)];
        return;
    }
    out->family = flags & 8 ? AF_INET6 : AF_INET;
    out->bits = out->family == AF_INET ? 32 : 128;
    for (unsigned i = 0; i < out->bits / 8; i++)
        out->octets[i] = (uint8_t)next(bytes);
    if (out->family == AF_INET && (out->octets[3] & 1))
        out->octets[0] = starts[out->octets[0] % sizeof starts];
    if (out->family == AF_INET6 && (out->octets[15] & 1))
        memset(out->octets + 1, 0, 9);
    out->prefix = line ? next(bytes) % (out->bits + 1) : out->bits;
    for (unsigned bit = out->prefix; bit < out->bits; bit++)
        out->octets[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
}

static char *thing_write(const struct thing *thing) {
    struct text text = {0};
    if (thing->address) {
        char address[INET6_ADDRSTRLEN];
        inet_ntop(thing->family, thing->octets, address, sizeof address);
        text_format(&text, thing->family == AF_INET6 && thing->ports != 0 ? "[%s]" : "%s", address);
        if (thing->prefix < thing->bits)
            text_format(&text, "/%u", thing->prefix);
    } else {
        text_append(&text, thing->below ? "*." : "");
        for (size_t i = 0; i < thing->labels; i++)
            text_format(&text, "%s%s", i > 0 ? "." : "", thing->label[i]);
    }
    const char *separator = ":";
    for (size_t i = 0; i < sizeof port_numbers / sizeof *port_numbers; i++)
        if (thing->ports >> i & 1) {
            text_format(&text, "%s%u", separator, port_numbers[i]);
            separator = ",";
        }
    text_append(&text, thing->private ? " private" : "");
    return text_take(&text);
}

static bool bits_agree(const uint8_t *one, const uint8_t *other, unsigned count) {
    for (unsigned bit = 0; bit < count; bit++)
        if ((one[bit / 8] ^ other[bit / 8]) & (0x80u >> bit % 8))
            return false;
    return true;
}

static bool is_in(const struct thing *asked, const char *address, unsigned prefix) {
    uint8_t octets[16];
    int family = strchr(address, ':') != NULL ? AF_INET6 : AF_INET;
    return inet_pton(family, address, octets) == 1 && asked->family == family &&
           bits_agree(asked->octets, octets, prefix);
}

/* As docs/policy.md has them. */
static bool is_always_refused(const struct thing *asked) {
    return is_in(asked, "0.0.0.0", 8) || is_in(asked, "224.0.0.0", 4) || is_in(asked, "240.0.0.0", 4) ||
           is_in(asked, "198.18.0.0", 15) || is_in(asked, "::", 128) || is_in(asked, "::ffff:0:0", 96) ||
           is_in(asked, "ff00::", 8);
}

static bool is_private(const struct thing *asked) {
    return is_in(asked, "10.0.0.0", 8) || is_in(asked, "172.16.0.0", 12) || is_in(asked, "192.168.0.0", 16) ||
           is_in(asked, "127.0.0.0", 8) || is_in(asked, "100.64.0.0", 10) ||
           is_in(asked, "169.254.0.0", 16) || is_in(asked, "192.0.0.0", 24) ||
           is_in(asked, "168.63.129.16", 32) || is_in(asked, "::1", 128) || is_in(asked, "fc00::", 7) ||
           is_in(asked, "fe80::", 10) || is_in(asked, "fec0::", 10) || is_in(asked, "64:ff9b::", 96) ||
           is_in(asked, "64:ff9b:1::", 48) || is_in(asked, "2002::", 16) || is_in(asked, "100::", 64);
}

static bool oracle(const struct thing *line, const struct thing *asked, unsigned port) {
    bool has_port = line->ports == 0 && (port == 80 || port == 443);
    for (size_t i = 0; i < sizeof port_numbers / sizeof *port_numbers; i++)
        has_port = has_port || (line->ports >> i & 1 && port_numbers[i] == port);
    if (!has_port || line->address != asked->address)
        return false;
    if (line->address)
        return line->family == asked->family && bits_agree(line->octets, asked->octets, line->prefix) &&
               !is_always_refused(asked) && (line->private || !is_private(asked));
    if (line->below ? asked->labels <= line->labels : asked->labels != line->labels)
        return false;
    for (size_t i = 1; i <= line->labels; i++)
        if (strcasecmp(line->label[line->labels - i], asked->label[asked->labels - i]) != 0)
            return false;
    return true;
}

static void require(bool condition) {
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes bytes = {data, size};
    struct policy_list list = {0};
    struct thing lines[LINES_MAX], asked;
    unsigned flags = next(&bytes);
    size_t count = flags % (LINES_MAX + 1), wanted = LINES_MAX;
    unsigned port = flags & 0x80 ? 8080 : port_numbers[flags >> 5 & 3];
    thing_read(&bytes, false, &asked);
    for (size_t i = 0; i < count; i++) {
        thing_read(&bytes, true, &lines[i]);
        /* What was asked for, as an address of the line: or nothing would ever match by chance. */
        if (lines[i].address && asked.address && lines[i].family == asked.family && next(&bytes) % 2 == 0) {
            memcpy(lines[i].octets, asked.octets, sizeof asked.octets);
            for (unsigned bit = lines[i].prefix; bit < lines[i].bits; bit++)
                lines[i].octets[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
        }
        memory_owned char *text = thing_write(&lines[i]);
        policy_list_append(&list, text, "fuzz");
        if (wanted == LINES_MAX && oracle(&lines[i], &asked, port))
            wanted = i;
    }
    memory_owned char *text = thing_write(&asked);
    struct policy_host host;
    bool allowed;
    size_t index = 0;
    error_owned unread = policy_host_read(text, &host);
    require(unread == NULL);
    error_owned error = match_host(&list, &host, (uint16_t)port, &allowed, &index);
    require(error == NULL);
    require(allowed == (wanted != LINES_MAX) && (!allowed || index == wanted));
    policy_host_clear(&host);
    policy_list_free(&list);
    return 0;
}
