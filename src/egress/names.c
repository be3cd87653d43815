#include "egress/names.h"

#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/text.h"
#include "policy/hosts.h"

#define NAME_MAX_BYTES (HOST_NAME_SIZE - 1)
#define LABEL_MAX_BYTES 63
#define SLOT_MAX HOST_MAP_EXACT_MAX /* slots are 1 ... SLOT_MAX */
#define WALK_MAX 16

struct learnt {
    uint32_t name; /* offset in `text` */
    uint16_t slot;
};

struct host_map {
    struct string_list exact; /* in the order of the policy: slot is index + 1 */
    bool *in_force;           /* parallel to `exact`: a line names it; else only an earlier policy did */
    uint16_t *by_name;        /* indices of `exact`, sorted by name */
    struct string_list below; /* domains, without the "*." */
    struct string_list ever;  /* the same, with those of earlier policies */
    bool changed;             /* there was an earlier policy */
    struct text text;         /* learnt names, each with its NUL; bounded by their number */
    struct learnt *learnt;    /* in the order in which they came */
    uint16_t *by_slot;        /* indices of `learnt`, sorted by slot */
    size_t learnt_count, learnt_capacity;
};

static char lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || is_digit(byte) || byte == '-' || byte == '_';
}

/* What inet_aton and browsers take for the last part of an address: decimal, octal, 0x. */
static bool is_number(const char *label) {
    if (label[0] == '0' && label[1] == 'x')
        return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
    return label[strspn(label, "0123456789")] == '\0';
}

static bool is_label(const char *label, size_t length) {
    return length >= 1 && length <= LABEL_MAX_BYTES && label[0] != '-' && label[length - 1] != '-';
}

static bool normalise(const char *bytes, size_t length, char *out) {
    if (length > 0 && bytes[length - 1] == '.')
        length--;
    if (length == 0 || length > NAME_MAX_BYTES)
        return false;
    size_t label = 0;
    for (size_t i = 0; i < length; i++) {
        out[i] = lower(bytes[i]);
        if (out[i] == '.') {
            if (!is_label(out + label, i - label))
                return false;
            label = i + 1;
        } else if (!is_name_byte(out[i])) {
            return false;
        }
    }
    out[length] = '\0';
    return is_label(out + label, length - label) && !is_number(out + label);
}

bool host_name_normalise(const void *bytes, size_t length, char out[HOST_NAME_SIZE]) {
    if (normalise(bytes, length, out))
        return true;
    out[0] = '\0';
    return false;
}

static struct host_entry entry_make(const char *name, bool learnt, uint16_t slot) {
    uint8_t high = (uint8_t)(slot >> 8), low = (uint8_t)slot;
    return (struct host_entry){
        .name = name,
        .learnt = learnt,
        .slot = slot,
        .ipv4 = {198, learnt ? 19 : 18, high, low},
        .ipv6 = {0xfd, 0x00, 0x98, 0x00, [5] = learnt ? 1 : 0, [14] = high, [15] = low},
    };
}

/* The place of `name` in by_name: where it is, or where it belongs. */
static size_t exact_place(const struct host_map *map, const char *name, bool *found) {
    size_t low = 0, high = map->exact.count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(map->exact.items[map->by_name[middle]], name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void append_once(struct string_list *list, const char *string) {
    if (!string_list_contains(list, string))
        string_list_append(list, string);
}

static struct error *line_add(struct host_map *map, const struct policy_host *line, bool in_force) {
    if (line->kind == POLICY_HOST_BELOW) {
        append_once(&map->ever, line->name);
        if (in_force)
            append_once(&map->below, line->name);
        return NULL;
    }
    if (line->kind != POLICY_HOST_NAME)
        return NULL;
    bool found;
    size_t place = exact_place(map, line->name, &found), count = map->exact.count;
    if (found) {
        map->in_force[map->by_name[place]] |= in_force;
        return NULL;
    }
    if (count == HOST_MAP_EXACT_MAX)
        return error_new(ERROR_INVALID, "network.allowed_hosts: expected at most %d names",
                         HOST_MAP_EXACT_MAX);
    map->by_name = memory_resize(map->by_name, count + 1, sizeof *map->by_name);
    memmove(map->by_name + place + 1, map->by_name + place, (count - place) * sizeof *map->by_name);
    map->by_name[place] = (uint16_t)count;
    map->in_force = memory_resize(map->in_force, count + 1, sizeof *map->in_force);
    map->in_force[count] = in_force;
    string_list_append(&map->exact, line->name);
    return NULL;
}

static struct error *lines_add(struct host_map *map, const struct string_list *lines, bool in_force) {
    for (size_t i = 0; i < lines->count; i++) {
        struct policy_host line;
        struct error *error = policy_host_read(lines->items[i], &line);
        if (error == NULL)
            error = line_add(map, &line, in_force);
        policy_host_clear(&line);
        TRY(error);
    }
    return NULL;
}

struct error *host_map_make_after(const struct string_list *names, const struct policy_list *allowed_hosts,
                                  struct host_map **out) {
    host_map_owned map = memory_zeroed(sizeof *map);
    *out = NULL;
    map->changed = names != NULL && names->count > 0;
    if (map->changed)
        TRY(lines_add(map, names, false));
    TRY(lines_add(map, &allowed_hosts->values, true));
    *out = map;
    map = NULL;
    return NULL;
}

struct error *host_map_make(const struct policy_list *allowed_hosts, struct host_map **out) {
    return host_map_make_after(NULL, allowed_hosts, out);
}

struct error *host_names_remember(struct string_list *names, const struct policy_list *allowed_hosts) {
    host_map_owned map = NULL;
    TRY(host_map_make_after(names, allowed_hosts, &map)); /* whether there is room, and all can be read */
    string_list_owned struct string_list all = {0};
    for (size_t i = 0; i < map->exact.count; i++)
        string_list_append(&all, map->exact.items[i]);
    for (size_t i = 0; i < map->ever.count; i++)
        string_list_append_owned(&all, text_formatted("*.%s", map->ever.items[i]));
    string_list_free(names);
    *names = all;
    all = (struct string_list){0};
    return NULL;
}

void host_map_free(struct host_map *map) {
    if (map == NULL)
        return;
    string_list_free(&map->exact);
    string_list_free(&map->below);
    string_list_free(&map->ever);
    text_free(&map->text);
    free(map->in_force);
    free(map->by_name);
    free(map->by_slot);
    free(map->learnt);
    free(map);
}

void host_map_cleanup(struct host_map **map) {
    host_map_free(*map);
}

size_t host_map_exact_count(const struct host_map *map) {
    return map->exact.count;
}

struct host_entry host_map_exact(const struct host_map *map, size_t index) {
    return entry_make(map->exact.items[index], false, (uint16_t)(index + 1));
}

/* At a label's boundary, and never the domain itself. */
static bool is_below(const struct string_list *domains, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < domains->count; i++) {
        const char *domain = domains->items[i];
        size_t tail = strlen(domain);
        if (length > tail + 1 && name[length - tail - 1] == '.' && strcmp(name + length - tail, domain) == 0)
            return true;
    }
    return false;
}

bool host_map_allows(const struct host_map *map, const char *name) {
    bool found;
    size_t place = exact_place(map, name, &found);
    return (found && map->in_force[map->by_name[place]]) || is_below(&map->below, name);
}

struct host_entry host_map_learnt(const struct host_map *map, size_t index) {
    const struct learnt *learnt = &map->learnt[index];
    return entry_make(map->text.data + learnt->name, true, learnt->slot);
}

size_t host_map_learnt_count(const struct host_map *map) {
    return map->learnt_count;
}

/* FNV-1a: the same in every process and on every machine, so that the broker of a pod's next container gives
 * a name the address that it had. Anybody can choose names that fall together: the walk is therefore short,
 * and a name for which it finds no room has no address. Of names that nobody has chosen so,
 * HOST_MAP_LEARNT_MAX fill a sixteenth of the slots, and hardly ever does a walk take three steps. */
static uint16_t slot_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return (uint16_t)(1 + hash % SLOT_MAX);
}

static uint16_t slot_after(uint16_t slot) {
    return slot == SLOT_MAX ? 1 : (uint16_t)(slot + 1);
}

/* The place of `slot` in by_slot: where it is, or where it belongs. */
static size_t slot_place(const struct host_map *map, uint16_t slot, bool *taken) {
    size_t low = 0, high = map->learnt_count;
    *taken = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint16_t there = map->learnt[map->by_slot[middle]].slot;
        if (there == slot) {
            *taken = true;
            return middle;
        }
        if (there < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Walks from the name's own slot to it, or to the first that is free; *slot is 0 where the walk ends before
 * either. */
static bool learnt_find(const struct host_map *map, const char *name, uint16_t *slot) {
    *slot = slot_of(name);
    for (int step = 0; step < WALK_MAX; step++) {
        bool taken;
        size_t place = slot_place(map, *slot, &taken);
        if (!taken)
            return false;
        if (strcmp(map->text.data + map->learnt[map->by_slot[place]].name, name) == 0)
            return true;
        *slot = slot_after(*slot);
    }
    *slot = 0;
    return false;
}

bool host_map_find(const struct host_map *map, const char *name, struct host_entry *out) {
    bool found;
    size_t place = exact_place(map, name, &found);
    if (found) {
        *out = host_map_exact(map, map->by_name[place]);
        return true;
    }
    uint16_t slot;
    if (!learnt_find(map, name, &slot))
        return false;
    place = slot_place(map, slot, &found);
    *out = host_map_learnt(map, map->by_slot[place]);
    return true;
}

static void learnt_add(struct host_map *map, const char *name, uint16_t slot) {
    size_t count = map->learnt_count;
    if (count == map->learnt_capacity) {
        map->learnt_capacity = count == 0 ? 64 : count * 2;
        map->learnt = memory_resize(map->learnt, map->learnt_capacity, sizeof *map->learnt);
        map->by_slot = memory_resize(map->by_slot, map->learnt_capacity, sizeof *map->by_slot);
    }
    bool taken;
    size_t place = slot_place(map, slot, &taken);
    memmove(map->by_slot + place + 1, map->by_slot + place, (count - place) * sizeof *map->by_slot);
    map->by_slot[place] = (uint16_t)count;
    map->learnt[count] = (struct learnt){.name = (uint32_t)map->text.length, .slot = slot};
    text_append_bytes(&map->text, name, strlen(name) + 1);
    map->learnt_count++;
}

enum host_answer host_map_learn(struct host_map *map, const char *name, struct host_entry *out) {
    if (!host_map_allows(map, name))
        return HOST_DENIED;
    if (host_map_find(map, name, out))
        return HOST_KNOWN;
    if (map->learnt_count == HOST_MAP_LEARNT_MAX)
        return HOST_FULL;
    uint16_t slot;
    (void)learnt_find(map, name, &slot);
    if (slot == 0)
        return HOST_FULL;
    learnt_add(map, name, slot);
    *out = host_map_learnt(map, map->learnt_count - 1);
    return HOST_LEARNT;
}

bool host_map_import(struct host_map *map, const char *name, uint16_t slot) {
    char normal[HOST_NAME_SIZE];
    if (!host_name_normalise(name, strlen(name), normal) || strcmp(name, normal) != 0)
        return false;
    uint16_t expected;
    bool exact;
    (void)exact_place(map, name, &exact);
    if (exact && !map->changed) /* else it may have got a line of its own after it was learnt */
        return false;
    if (learnt_find(map, name, &expected))
        return expected == slot;
    if (expected == 0 || expected != slot || !is_below(&map->ever, name) ||
        map->learnt_count == HOST_MAP_LEARNT_MAX)
        return false;
    learnt_add(map, name, slot);
    return true;
}

/* The slot in an address of the ranges; *learnt says of which. False for any other address. */
static bool slot_read(int family, const uint8_t *address, bool *learnt, uint16_t *slot) {
    static const uint8_t prefix[4] = {0xfd, 0x00, 0x98, 0x00}, zero[8];
    if (family == AF_INET) {
        *learnt = address[1] == 19;
        *slot = (uint16_t)(address[2] << 8 | address[3]);
        return address[0] == 198 && (address[1] == 18 || address[1] == 19);
    }
    if (family != AF_INET6)
        return false;
    *learnt = address[5] == 1;
    *slot = (uint16_t)(address[14] << 8 | address[15]);
    return memcmp(address, prefix, sizeof prefix) == 0 && address[4] == 0 && address[5] <= 1 &&
           memcmp(address + 6, zero, sizeof zero) == 0;
}

const char *host_map_name(const struct host_map *map, int family, const uint8_t *address) {
    bool learnt, taken;
    uint16_t slot;
    if (!slot_read(family, address, &learnt, &slot))
        return NULL;
    if (!learnt)
        return slot >= 1 && slot <= map->exact.count ? map->exact.items[slot - 1] : NULL;
    size_t place = slot_place(map, slot, &taken);
    return taken ? map->text.data + map->learnt[map->by_slot[place]].name : NULL;
}

/* The whole of fd00:9800::/32, of which the two /48 are part. */
bool host_address_is_synthetic(int family, const uint8_t *address) {
    static const uint8_t ipv6[4] = {0xfd, 0x00, 0x98, 0x00};
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    if (family == AF_INET)
        return address[0] == 198 && (address[1] == 18 || address[1] == 19);
    if (memcmp(address, mapped, sizeof mapped) == 0 || memcmp(address, nat64, sizeof nat64) == 0)
        return host_address_is_synthetic(AF_INET, address + 12);
    return memcmp(address, ipv6, sizeof ipv6) == 0;
}
