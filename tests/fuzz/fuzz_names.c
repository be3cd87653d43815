/* Names and their addresses: a stream of names, one a line, is learnt, told to a second map and looked up in
 * both. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/names.h"

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

static struct host_map *map_make(void) {
    static const char *const lines[] = {"example.org", "*.w", "*.wild.test:8443", "192.0.2.0/24", "a.w"};
    struct policy_list list = {0};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        policy_list_append(&list, lines[i], "fuzz");
    struct host_map *map;
    struct error *error = host_map_make(&list, &map);
    REQUIRE(error == NULL);
    policy_list_free(&list);
    return map;
}

static void name_check(struct host_map *map, struct host_map *copy, const uint8_t *bytes, size_t length) {
    char name[HOST_NAME_SIZE], again[HOST_NAME_SIZE];
    if (!host_name_normalise(bytes, length, name)) {
        REQUIRE(name[0] == '\0');
        return;
    }
    REQUIRE(strlen(name) < HOST_NAME_SIZE && memchr(bytes, '\0', length) == NULL);
    REQUIRE(host_name_normalise(name, strlen(name), again) && strcmp(name, again) == 0);
    struct host_entry entry, other;
    enum host_answer answer = host_map_learn(map, name, &entry);
    REQUIRE(host_map_allows(map, name) == (answer != HOST_DENIED));
    if (answer == HOST_DENIED || answer == HOST_FULL)
        return;
    REQUIRE(strcmp(entry.name, name) == 0);
    REQUIRE(strcmp(host_map_name(map, AF_INET, entry.ipv4), name) == 0);
    REQUIRE(strcmp(host_map_name(map, AF_INET6, entry.ipv6), name) == 0);
    REQUIRE(host_address_is_synthetic(AF_INET, entry.ipv4) &&
            host_address_is_synthetic(AF_INET6, entry.ipv6));
    REQUIRE(host_map_import(copy, name, entry.slot) == entry.learnt);
    REQUIRE(host_map_find(copy, name, &other) && other.slot == entry.slot && other.learnt == entry.learnt);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    host_map_owned map = map_make();
    host_map_owned copy = map_make();
    for (size_t at = 0; at < length;) {
        const uint8_t *end = memchr(bytes + at, '\n', length - at);
        size_t size = end != NULL ? (size_t)(end - bytes) - at : length - at;
        /* A copy of its own, without a byte of slack, so that a read past the end is seen. */
        uint8_t *line = malloc(size);
        if (line == NULL)
            return 0;
        memcpy(line, bytes + at, size);
        name_check(map, copy, line, size);
        if (size >= 16) {
            (void)host_map_name(map, AF_INET6, line);
            (void)host_map_name(map, AF_INET, line);
        }
        free(line);
        at += size + 1;
    }
    return 0;
}
