/* An image's /etc/passwd, a variable's value, and paths: hostile text that is parsed by hand. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "facts/passwd.h"
#include "facts/places.h"
#include "harden/secrets.h"
#include "policy/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uid_t uids[] = {0, 1, 1000, 65534, 4294967294u};
    for (size_t i = 0; i < sizeof uids / sizeof uids[0]; i++) {
        memory_owned char *home = passwd_home((const char *)data, size, uids[i]);
        require(home == NULL || (home[0] == '/' && strlen(home) < size));
    }
    string_list_owned struct string_list homes = {0};
    passwd_people((const char *)data, size, &homes);
    require(homes.count <= 32);

    memory_owned char *string = memory_zeroed(size + 1);
    memcpy(string, data, size);
    const char *shape = secret_shape(string);
    require(shape == NULL || text_starts_with(shape, "its value"));
    memory_owned char *clean = match_path_clean(string);
    memory_owned char *twice = match_path_clean(clean);
    require(clean[0] == '/' && strcmp(clean, twice) == 0 && strstr(clean, "//") == NULL);
    require(match_path_within(clean, "/") && match_path_within(clean, clean));
    require(match_name(string, string) || strpbrk(string, "*?") != NULL);
    (void)places_engine_made(clean, "/bundle");
    (void)places_engine_volume(clean);
    return 0;
}
