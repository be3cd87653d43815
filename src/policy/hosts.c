#include "policy/hosts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/memory.h"

#define NAME_MAX_BYTES 253 /* RFC 1035 section 2.3.4, without the final dot */
#define LABEL_MAX_BYTES 63

static const uint16_t default_ports[] = {80, 443};

struct range {
    int family;
    unsigned char address[16];
    unsigned char prefix;
    const char *what;
};

/* Nothing that a connection out of a container could be meant for. */
static const struct range refused[] = {
    {AF_INET, {0}, 8, "\"this\" network, which no connection leads to"},
    {AF_INET, {224}, 4, "multicast"},
    {AF_INET, {240}, 4, "reserved"},
    {AF_INET, {198, 18}, 15, "the range that pinfold takes its own addresses from"},
    {AF_INET6, {0}, 128, "the unspecified address"},
    {AF_INET6, {[10] = 0xff, [11] = 0xff}, 96, "an IPv4 address in IPv6 form; write it as IPv4"},
    {AF_INET6, {0xff}, 8, "multicast"},
};
/* What a public name must not lead to, unless the rule says so. */
static const struct range private[] = {
    {AF_INET, {127}, 8, "loopback"},
    {AF_INET, {10}, 8, "private"},
    {AF_INET, {172, 16}, 12, "private"},
    {AF_INET, {192, 168}, 16, "private"},
    {AF_INET, {100, 64}, 10, "private (RFC 6598)"},
    {AF_INET, {169, 254}, 16, "link-local, where clouds keep their metadata and its credentials"},
    {AF_INET, {192, 0, 0}, 24, "of the IETF's protocols, where a cloud keeps its metadata"},
    {AF_INET, {168, 63, 129, 16}, 32, "a cloud's metadata service"},
    {AF_INET6, {[15] = 1}, 128, "loopback"},
    {AF_INET6, {0x00, 0x64, 0xff, 0x9b}, 96, "an IPv4 address behind NAT64"},
    {AF_INET6, {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "behind a NAT64 of the local network"},
    {AF_INET6, {0x20, 0x02}, 16, "an IPv4 address in the form of 6to4"},
    {AF_INET6, {0x01}, 64, "for what is thrown away"},
    {AF_INET6, {0xfe, 0xc0}, 10, "private (RFC 3879)"},
    {AF_INET6, {0xfc}, 7, "private"},
    {AF_INET6, {0xfe, 0x80}, 10, "link-local"},
};

static bool same_prefix(const unsigned char *one, const unsigned char *other, unsigned bits) {
    if (memcmp(one, other, bits / 8) != 0)
        return false;
    unsigned char mask = (unsigned char)(0xff00u >> (bits % 8));
    return bits % 8 == 0 || ((one[bits / 8] ^ other[bits / 8]) & mask) == 0;
}

static const struct range *range_around(const struct range *ranges, size_t count,
                                        const struct policy_host *host) {
    for (size_t i = 0; i < count; i++)
        if (ranges[i].family == host->family && ranges[i].prefix <= host->prefix &&
            same_prefix(ranges[i].address, host->address, ranges[i].prefix))
            return &ranges[i];
    return NULL;
}

void policy_host_clear(struct policy_host *host) {
    free(host->name);
    *host = (struct policy_host){0};
}

struct error *policy_host_add_port(struct policy_host *host, const char *digits) {
    size_t length = strlen(digits);
    unsigned long port =
        length > 0 && length <= 5 && strspn(digits, "0123456789") == length ? strtoul(digits, NULL, 10) : 0;
    if (port < 1 || port > 65535)
        return error_new(ERROR_INVALID, "expected a port from 1 to 65535, found \"%.40s\"", digits);
    size_t place = 0;
    while (place < host->ports_count && host->ports[place] < port)
        place++;
    if (place < host->ports_count && host->ports[place] == port)
        return NULL;
    if (host->ports_count == POLICY_PORTS_MAX)
        return error_new(ERROR_INVALID, "expected at most %d ports", POLICY_PORTS_MAX);
    memmove(host->ports + place + 1, host->ports + place, (host->ports_count - place) * sizeof *host->ports);
    host->ports[place] = (uint16_t)port;
    host->ports_count++;
    return NULL;
}

static struct error *ports_read(struct policy_host *host, const char *ports) {
    memory_owned char *copy = memory_copy_string(ports);
    for (char *next = copy; next != NULL;) {
        char *port = strsep(&next, ",");
        TRY(policy_host_add_port(host, port));
    }
    return NULL;
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

/* Host names as they are used: letters, digits, '-' and '_'; the last label is no number, for that would be
 * meant as an address. */
static bool is_name(const char *name) {
    size_t label = 0;
    bool digits = true;
    if (strlen(name) > NAME_MAX_BYTES)
        return false;
    for (const char *byte = name; *byte != '\0'; byte++) {
        if (*byte == '.') {
            if (label == 0 || byte[-1] == '-')
                return false;
            label = 0;
            digits = true;
        } else if (!is_name_byte(*byte) || ++label > LABEL_MAX_BYTES || (label == 1 && *byte == '-')) {
            return false;
        } else if (*byte < '0' || *byte > '9') {
            digits = false;
        }
    }
    return label > 0 && !digits;
}

static void lower(char *name) {
    for (; *name != '\0'; name++)
        if (*name >= 'A' && *name <= 'Z')
            *name = (char)(*name - 'A' + 'a');
}

static bool address_read(char *text, struct policy_host *host) {
    char *slash = strchr(text, '/');
    if (slash != NULL)
        *slash = '\0';
    bool parsed = false;
    if (inet_pton(AF_INET, text, host->address) == 1) {
        host->family = AF_INET;
        parsed = true;
    } else if (inet_pton(AF_INET6, text, host->address) == 1) {
        host->family = AF_INET6;
        parsed = true;
    }
    if (slash != NULL)
        *slash = '/';
    if (!parsed)
        return false;
    unsigned bits = host->family == AF_INET ? 32 : 128;
    if (slash != NULL) {
        size_t length = strspn(slash + 1, "0123456789");
        unsigned long prefix = strtoul(slash + 1, NULL, 10);
        if (length == 0 || length > 3 || slash[1 + length] != '\0' || prefix > bits)
            return false;
        bits = (unsigned)prefix;
    }
    host->kind = POLICY_HOST_RANGE;
    host->prefix = (unsigned char)bits;
    return true;
}

static bool has_bits_beyond_prefix(const struct policy_host *host) {
    unsigned bits = host->family == AF_INET ? 32 : 128;
    for (unsigned bit = host->prefix; bit < bits; bit++)
        if (host->address[bit / 8] & (0x80u >> (bit % 8)))
            return true;
    return false;
}

static struct error *not_a_host(const char *item) {
    return error_new(ERROR_INVALID,
                     "expected a host: name, \"*.name\", name:port, address, address/bits or "
                     "{host: NAME, ports: [443], private: true}, found \"%.100s\"",
                     item);
}

/* The part before the ports, and the ports: "[::1]:443", "name:443", "2001:db8::1" (no port). */
static struct error *split(const char *item, char **host, const char **ports) {
    *ports = NULL;
    if (item[0] == '[') {
        const char *end = strchr(item, ']');
        if (end == NULL)
            return not_a_host(item);
        const char *colon = strchr(end, ':');
        size_t rest = colon != NULL ? (size_t)(colon - end - 1) : strlen(end + 1);
        *host = text_formatted("%.*s%.*s", (int)(end - item - 1), item + 1, (int)rest, end + 1);
        *ports = colon != NULL ? colon + 1 : NULL;
        return NULL;
    }
    const char *colon = strchr(item, ':');
    if (colon != NULL && strchr(colon + 1, ':') != NULL)
        colon = NULL; /* IPv6 */
    *host = text_formatted("%.*s", (int)(colon != NULL ? (size_t)(colon - item) : strlen(item)), item);
    *ports = colon != NULL ? colon + 1 : NULL;
    return NULL;
}

struct error *policy_host_read(const char *given, struct policy_host *out) {
    static const char private_word[] = " private";
    *out = (struct policy_host){0};
    memory_owned char *item = memory_copy_string(given);
    if (text_ends_with(item, private_word)) {
        out->is_private = true;
        item[strlen(item) - strlen(private_word)] = '\0';
    }
    if (strstr(item, "://") != NULL)
        return error_new(ERROR_INVALID, "expected a host, found the URL \"%.100s\": write the host alone",
                         given);
    if (strcmp(item, "*") == 0)
        return error_new(ERROR_INVALID, "expected a host, found \"*\": every host is `mode: open`");
    memory_owned char *host = NULL;
    const char *ports;
    TRY(split(item, &host, &ports));
    if (ports != NULL)
        TRY(ports_read(out, ports));
    for (size_t i = 0; ports == NULL && i < sizeof default_ports / sizeof default_ports[0]; i++)
        out->ports[out->ports_count++] = default_ports[i];
    if (address_read(host, out)) {
        if (has_bits_beyond_prefix(out))
            return error_new(ERROR_INVALID,
                             "\"%.100s\" has bits set beyond its prefix of %u: which range is meant?", given,
                             out->prefix);
        return NULL;
    }
    lower(host);
    const char *name = host;
    if (text_starts_with(name, "*.")) {
        out->kind = POLICY_HOST_BELOW;
        name += 2;
    }
    size_t length = strlen(name);
    if (length > 1 && name[length - 1] == '.')
        host[strlen(host) - 1] = '\0';
    if (!is_name(name))
        return not_a_host(given);
    out->name = memory_copy_string(name);
    return NULL;
}

struct error *policy_host_check(const struct policy_host *host) {
    if (host->kind != POLICY_HOST_RANGE)
        return NULL;
    const struct range *range = range_around(refused, sizeof refused / sizeof refused[0], host);
    memory_owned char *text = policy_host_write(host);
    if (range != NULL)
        return error_new(ERROR_INVALID, "\"%s\" is always refused: it is %s", text, range->what);
    range = range_around(private, sizeof private / sizeof private[0], host);
    if (range != NULL && !host->is_private)
        return error_new(ERROR_INVALID,
                         "\"%s\" is refused, because it is %s, unless the line says so: "
                         "{host: \"%s\", private: true}",
                         text, range->what, text);
    return NULL;
}

bool policy_host_is_reachable(const struct policy_host *asked, bool is_private) {
    struct policy_host address = *asked;
    address.is_private = is_private;
    struct error *error = policy_host_check(&address);
    bool reachable = error == NULL;
    error_ignore(error);
    return reachable;
}

bool policy_address_is_reachable(int family, const unsigned char *address, bool is_private) {
    struct policy_host host = {
        .kind = POLICY_HOST_RANGE, .family = (unsigned char)family, .prefix = family == AF_INET ? 32 : 128};
    memcpy(host.address, address, family == AF_INET ? 4 : 16);
    return policy_host_is_reachable(&host, is_private);
}

static bool has_default_ports(const struct policy_host *host) {
    return host->ports_count == sizeof default_ports / sizeof default_ports[0] &&
           memcmp(host->ports, default_ports, sizeof default_ports) == 0;
}

char *policy_host_write(const struct policy_host *host) {
    struct text text = {0};
    if (host->kind == POLICY_HOST_RANGE) {
        char address[INET6_ADDRSTRLEN];
        unsigned bits = host->family == AF_INET ? 32 : 128;
        inet_ntop(host->family, host->address, address, sizeof address);
        bool brackets = host->family == AF_INET6 && !has_default_ports(host);
        text_format(&text, brackets ? "[%s]" : "%s", address);
        if (host->prefix < bits)
            text_format(&text, "/%u", host->prefix);
    } else {
        text_format(&text, "%s%s", host->kind == POLICY_HOST_BELOW ? "*." : "", host->name);
    }
    for (size_t i = 0; !has_default_ports(host) && i < host->ports_count; i++)
        text_format(&text, "%s%u", i == 0 ? ":" : ",", host->ports[i]);
    if (host->is_private)
        text_append(&text, " private");
    return text_take(&text);
}

static bool has_port(const struct policy_host *host, uint16_t port) {
    for (size_t i = 0; i < host->ports_count; i++)
        if (host->ports[i] == port)
            return true;
    return false;
}

/* Is `name` below the domain? Never the domain itself. */
static bool is_below(const char *name, const char *domain) {
    size_t length = strlen(name), tail = strlen(domain);
    return length > tail + 1 && name[length - tail - 1] == '.' &&
           strcasecmp(name + length - tail, domain) == 0;
}

bool policy_host_covers(const struct policy_host *wide, const struct policy_host *narrow) {
    for (size_t i = 0; i < narrow->ports_count; i++)
        if (!has_port(wide, narrow->ports[i]))
            return false;
    if (narrow->is_private && !wide->is_private)
        return false;
    if ((wide->kind == POLICY_HOST_RANGE) != (narrow->kind == POLICY_HOST_RANGE))
        return false;
    if (wide->kind == POLICY_HOST_RANGE)
        return wide->family == narrow->family && wide->prefix <= narrow->prefix &&
               same_prefix(wide->address, narrow->address, wide->prefix);
    if (wide->kind == narrow->kind && strcmp(wide->name, narrow->name) == 0)
        return true;
    return wide->kind == POLICY_HOST_BELOW && is_below(narrow->name, wide->name);
}

bool policy_host_matches_name(const struct policy_host *host, const char *name, uint16_t port) {
    if (host->kind == POLICY_HOST_RANGE || !has_port(host, port))
        return false;
    size_t length = strlen(name);
    memory_owned char *bare =
        text_formatted("%.*s", (int)(length > 0 && name[length - 1] == '.' ? length - 1 : length), name);
    return host->kind == POLICY_HOST_NAME ? strcasecmp(bare, host->name) == 0 : is_below(bare, host->name);
}

bool policy_host_matches_address(const struct policy_host *host, int family, const unsigned char *address,
                                 uint16_t port) {
    return host->kind == POLICY_HOST_RANGE && host->family == family && has_port(host, port) &&
           same_prefix(host->address, address, host->prefix);
}
