#include "record/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MARK "[redacted]"

static const char quotes[] = "\"'`";

/* -- tokens of well-known shape -- */

enum alphabet { ALNUM, WORD /* alphanumeric, _ and - */, UPPER /* A-Z 0-9 */ };

struct token_shape {
    const char *prefix;
    enum alphabet alphabet;
    unsigned char minimum; /* characters that must follow the prefix */
    bool digit;            /* one of them a digit: the prefix alone is a plausible word */
};

static const struct token_shape token_shapes[] = {
    {"ghp_", ALNUM, 6, false},     {"gho_", ALNUM, 6, false},     {"ghs_", ALNUM, 6, false},
    {"ghu_", ALNUM, 6, false},     {"ghr_", ALNUM, 6, false},     {"github_pat_", WORD, 6, false},
    {"glpat-", WORD, 6, false},    {"gldt-", WORD, 6, false},     {"glrt-", WORD, 6, false},
    {"npm_", ALNUM, 20, false},    {"sk-ant-", WORD, 6, false},   {"sk-", WORD, 12, true},
    {"sk_live_", ALNUM, 6, false}, {"sk_test_", ALNUM, 6, false}, {"rk_live_", ALNUM, 6, false},
    {"xoxb-", WORD, 6, false},     {"xoxp-", WORD, 6, false},     {"xoxa-", WORD, 6, false},
    {"xoxr-", WORD, 6, false},     {"xoxs-", WORD, 6, false},     {"xapp-", WORD, 6, false},
    {"AKIA", UPPER, 12, false},    {"ASIA", UPPER, 12, false},    {"AIza", WORD, 30, false},
    {"hf_", ALNUM, 20, false},     {"pypi-", WORD, 30, false},    {"dckr_pat_", WORD, 6, false},
    {"dop_v1_", ALNUM, 6, false},  {"shpat_", ALNUM, 6, false},   {"AGE-SECRET-KEY-", WORD, 6, false},
};

static bool in_alphabet(unsigned char byte, enum alphabet alphabet) {
    switch (alphabet) {
    case ALNUM:
        return isalnum(byte);
    case WORD:
        return isalnum(byte) || byte == '_' || byte == '-';
    case UPPER:
        return isupper(byte) || isdigit(byte);
    }
    return false;
}

/* Length of the token at `bytes` and of its prefix; 0 when there is none. */
static size_t token_length(const char *bytes, size_t left, size_t *prefix_length) {
    for (size_t i = 0; i < sizeof token_shapes / sizeof token_shapes[0]; i++) {
        const struct token_shape *shape = &token_shapes[i];
        if (bytes[0] != shape->prefix[0])
            continue;
        size_t prefix = strlen(shape->prefix);
        if (left < prefix + shape->minimum || memcmp(bytes, shape->prefix, prefix) != 0)
            continue;
        size_t end = prefix;
        bool digit = false;
        while (end < left && in_alphabet((unsigned char)bytes[end], shape->alphabet))
            digit |= isdigit((unsigned char)bytes[end++]) != 0;
        if (end - prefix >= shape->minimum && (digit || !shape->digit)) {
            *prefix_length = prefix;
            return end;
        }
    }
    /* A JSON Web Token: base64url of '{"', then two more parts. */
    if (left > 20 && memcmp(bytes, "eyJ", 3) == 0) {
        size_t end = 0;
        unsigned dots = 0;
        while (end < left && (in_alphabet((unsigned char)bytes[end], WORD) || bytes[end] == '.'))
            dots += bytes[end++] == '.';
        if (dots >= 2) {
            *prefix_length = 3;
            return end;
        }
    }
    return 0;
}

/* The user information of the URL whose "://" ends at `bytes`: appends it redacted and returns its length
 * with the
 * '@'; 0 when there is none to hide. */
static size_t url_user_information(const char *bytes, size_t left, struct text *out) {
    size_t end = 0;
    while (end < left && !isspace((unsigned char)bytes[end]) && !strchr("\"'`<>", bytes[end]))
        end++;
    size_t authority = 0;
    while (authority < end && !strchr("/?#", bytes[authority]))
        authority++;
    const char *at = memrchr(bytes, '@', authority);
    const char *colon = memchr(bytes, ':', authority);
    /* A password with an unescaped slash: what follows the colon is then no port. */
    if (at == NULL && colon != NULL && colon + 1 < bytes + end && !isdigit((unsigned char)colon[1]))
        at = memrchr(bytes, '@', end);
    if (at == NULL)
        return 0;
    if (colon != NULL && colon < at) {
        text_append_bytes(out, bytes, (size_t)(colon + 1 - bytes));
        text_append(out, MARK "@");
    } else if (at - bytes > 16) { /* a token as the user's name; "git@" and the like are shorter */
        text_append(out, MARK "@");
    } else {
        return 0;
    }
    return (size_t)(at + 1 - bytes);
}

/* The shortest of all shapes is "://x@" in a URL, then a prefix of three and six more. */
bool redact_needed(const char *bytes, size_t length) {
    return length >= 9 || memchr(bytes, '@', length) != NULL;
}

void redact_text(const char *bytes, size_t length, struct text *out) {
    static const char key_header[] = "-----BEGIN ";
    size_t plain = 0; /* start of what is not yet appended */
    for (size_t i = 0; i < length;) {
        size_t prefix = 0;
        bool boundary = i == 0 || !in_alphabet((unsigned char)bytes[i - 1], ALNUM);
        if (boundary && isalnum((unsigned char)bytes[i])) {
            size_t token = token_length(bytes + i, length - i, &prefix);
            if (token > 0) {
                text_append_bytes(out, bytes + plain, i + prefix - plain);
                text_append(out, MARK);
                plain = i += token;
                continue;
            }
        }
        if (bytes[i] == ':' && length - i > 3 && bytes[i + 1] == '/' && bytes[i + 2] == '/') {
            text_append_bytes(out, bytes + plain, i + 3 - plain);
            plain = i += 3;
            plain = i += url_user_information(bytes + i, length - i, out);
            continue;
        }
        if (bytes[i] == '-' && length - i >= sizeof key_header && memcmp(bytes + i, key_header, 11) == 0 &&
            memmem(bytes + i, length - i, "PRIVATE KEY", 11) != NULL) {
            text_append_bytes(out, bytes + plain, i + 11 - plain);
            text_append(out, MARK);
            return;
        }
        i++;
    }
    text_append_bytes(out, bytes + plain, length - plain);
}

/* -- names that announce a secret -- */

/* Compared in lower case with '_' and '.' as '-': options, variables, properties, JSON members. */
static const char *const secret_names[] = {
    "password",      "passwd",      "pass",        "passphrase",   "pwd",
    "token",         "secret",      "api-key",     "apikey",       "accesskey",
    "access-key",    "secret-key",  "private-key", "bearer",       "jwt",
    "oauth2-bearer", "authtoken",   "-auth",       "-authtoken",   "-password",
    "-passwd",       "-token",      "-secret",     "-api-key",     "-apikey",
    "-access-key",   "-secret-key", "-passphrase", "-private-key", "-pat",
    "-auth-token",   "-pwd",        "sig",         "signature",    "x-amz-signature",
};
static const char *const header_names[] = {
    "authorization", "proxy-authorization", "x-api-key",      "api-key",   "private-token", "x-auth-token",
    "cookie",        "set-cookie",          "x-goog-api-key", "job-token",
};
static const char *const header_schemes[] = {"bearer", "basic", "token", "digest", "negotiate", "apikey"};

static bool is_name_byte(unsigned char byte) {
    return isalnum(byte) || byte == '_' || byte == '-' || byte == '.';
}

/* Entries that begin with '-' match as the end of a name. */
static bool secret_name(const char *name, size_t length) {
    char plain[64];
    while (length > 0 && *name == '-') { /* of an option */
        name++;
        length--;
    }
    if (length == 0 || length >= sizeof plain)
        return false;
    for (size_t i = 0; i < length; i++)
        plain[i] = name[i] == '_' || name[i] == '.' ? '-' : (char)tolower((unsigned char)name[i]);
    plain[length] = '\0';
    for (size_t i = 0; i < sizeof secret_names / sizeof secret_names[0]; i++) {
        const char *known = secret_names[i];
        if (known[0] == '-' ? text_ends_with(plain, known) : strcmp(plain, known) == 0)
            return true;
    }
    return text_ends_with(plain, "authtoken");
}

static bool in_names(const char *word, size_t length, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && strncasecmp(word, names[i], length) == 0)
            return true;
    return false;
}

static bool header_name(const char *word, size_t length) {
    return in_names(word, length, header_names, sizeof header_names / sizeof header_names[0]);
}

static bool scheme_name(const char *word, size_t length) {
    return in_names(word, length, header_schemes, sizeof header_schemes / sizeof header_schemes[0]);
}

/* -- command lines, word by word -- */

enum expectation { NOTHING, VALUE, HEADER_VALUE, USER_AND_PASSWORD };

struct scanner {
    enum expectation next; /* what the next word is */
    char quote;            /* a secret goes on up to this quote */
    bool curl;             /* -u takes user:password */
    bool password_option;  /* -p takes a password */
};

/* Appends the mark, and the closing quote that ended the secret. */
static void append_mark(struct text *out, const char *word, size_t length) {
    text_append(out, MARK);
    if (length > 1 && strchr(quotes, word[length - 1]))
        text_append_bytes(out, word + length - 1, 1);
}

static void scan_word(struct scanner *scanner, const char *word, size_t length, struct text *out);

/* A secret that starts at `value`: one in quotes ends with them, in this word or a later one. */
static void mask_value(struct scanner *scanner, const char *value, size_t length, struct text *out) {
    if (length == 0 || !strchr(quotes, value[0])) {
        append_mark(out, value, length);
        return;
    }
    text_append_bytes(out, value, 1);
    text_append(out, MARK);
    const char *close = memchr(value + 1, value[0], length - 1);
    if (close == NULL) {
        scanner->quote = value[0];
        return;
    }
    text_append_bytes(out, close, 1);
    size_t rest = length - (size_t)(close + 1 - value);
    if (rest > 0)
        scan_word(scanner, close + 1, rest, out);
}

static void note_program(struct scanner *scanner, const char *word, size_t length) {
    const char *slash = memrchr(word, '/', length);
    const char *name = slash ? slash + 1 : word;
    size_t size = length - (size_t)(name - word);
    static const char *const with_password[] = {"sshpass", "mysql", "mysqldump", "mysqladmin", "mariadb"};
    if (size == 4 && memcmp(name, "curl", 4) == 0)
        scanner->curl = true;
    if (in_names(name, size, with_password, sizeof with_password / sizeof with_password[0]))
        scanner->password_option = true;
}

/* The first '=' or ':' of the word that stands behind a name which announces a secret; SIZE_MAX for none.
 * *header says that the name is a header's. */
static size_t find_assignment(const char *word, size_t length, bool *header) {
    for (size_t i = 1; i < length; i++) {
        if (word[i] != '=' && word[i] != ':')
            continue;
        size_t end = i;
        bool quoted = strchr(quotes, word[end - 1]) != NULL; /* "password":"..." */
        if (quoted)
            end--;
        size_t start = end;
        while (start > 0 && is_name_byte((unsigned char)word[start - 1]))
            start--;
        const char *name = word + start;
        size_t size = end - start;
        if (size > 2 && memcmp(name, "-H", 2) == 0) { /* curl -HAuthorization:... */
            name += 2;
            size -= 2;
        }
        *header = word[i] == ':' && header_name(name, size);
        if (*header || ((word[i] == '=' || quoted) && secret_name(name, size)))
            return i;
    }
    return (size_t)-1;
}

static void scan_word(struct scanner *scanner, const char *word, size_t length, struct text *out) {
    static const size_t mark = sizeof MARK - 1;
    if (length >= mark && memcmp(word, MARK, mark) == 0) { /* redacted before, with its boundaries known */
        scanner->next = NOTHING;
        text_append_bytes(out, word, length);
        return;
    }
    enum expectation expected = scanner->next;
    scanner->next = NOTHING;
    if (expected == HEADER_VALUE && scheme_name(word, length)) {
        text_append_bytes(out, word, length);
        scanner->next = VALUE;
        return;
    }
    if (expected == VALUE || expected == HEADER_VALUE) {
        mask_value(scanner, word, length, out);
        return;
    }
    if (expected == USER_AND_PASSWORD) {
        const char *colon = memchr(word, ':', length);
        size_t kept = colon ? (size_t)(colon + 1 - word) : length;
        text_append_bytes(out, word, kept);
        if (colon)
            append_mark(out, colon, length - kept + 1);
        return;
    }
    note_program(scanner, word, length);
    bool header = false;
    size_t sign = find_assignment(word, length, &header);
    if (sign != (size_t)-1) {
        size_t value = sign + 1;
        size_t end = length;
        /* In a URL's query the next parameter follows; else the value is the rest of the word. */
        if (memchr(word, '?', sign) != NULL)
            for (end = value; end < length && !strchr("&#\"'", word[end]);)
                end++;
        redact_text(word, value, out);
        if (header && scheme_name(word + value, length - value)) {
            text_append_bytes(out, word + value, length - value);
            scanner->next = VALUE;
        } else if (value == length) {
            /* "NAME=" is an empty value; a header's or a member's value is the next word. */
            if (word[sign] == ':')
                scanner->next = header ? HEADER_VALUE : VALUE;
        } else {
            mask_value(scanner, word + value, end - value, out);
            if (end < length)
                scan_word(scanner, word + end, length - end, out);
        }
        return;
    }
    if (length > 1 && word[0] == '-') {
        bool user = scanner->curl && ((length == 2 && (word[1] == 'u' || word[1] == 'U')) ||
                                      (length == 6 && memcmp(word, "--user", 6) == 0) ||
                                      (length == 12 && memcmp(word, "--proxy-user", 12) == 0));
        if (scanner->password_option && word[1] == 'p' && length > 2) {
            text_append(out, "-p" MARK);
            return;
        }
        if (user)
            scanner->next = USER_AND_PASSWORD;
        else if ((length > 2 && secret_name(word, length)) ||
                 (scanner->password_option && length == 2 && word[1] == 'p'))
            scanner->next = VALUE;
    }
    redact_text(word, length, out);
}

static void scan_line(struct scanner *scanner, const char *bytes, size_t length, struct text *out) {
    for (size_t i = 0; i < length;) {
        size_t start = i;
        if (scanner->quote != '\0') {
            const char *close = memchr(bytes + i, scanner->quote, length - i);
            if (close == NULL) /* the end was cut off */
                return;
            scanner->quote = '\0';
            i = (size_t)(close - bytes);
            text_append_bytes(out, bytes + i, 1);
            i++;
            continue;
        }
        while (i < length && isspace((unsigned char)bytes[i]))
            i++;
        text_append_bytes(out, bytes + start, i - start);
        start = i;
        while (i < length && !isspace((unsigned char)bytes[i]))
            i++;
        if (i > start)
            scan_word(scanner, bytes + start, i - start, out);
    }
}

/* A private key has spaces in it and no end that can be relied on. */
static size_t before_private_key(const char *bytes, size_t length) {
    const char *header = memmem(bytes, length, "-----BEGIN ", 11);
    if (header == NULL || memmem(header, length - (size_t)(header - bytes), "PRIVATE KEY", 11) == NULL)
        return length;
    return (size_t)(header - bytes);
}

void redact_command_line(const char *bytes, size_t length, struct text *out) {
    struct scanner scanner = {0};
    size_t end = before_private_key(bytes, length);
    scan_line(&scanner, bytes, end, out);
    if (end < length)
        text_append(out, "-----BEGIN " MARK);
}

void redact_arguments(const char *bytes, size_t length, struct text *out) {
    struct scanner scanner = {0};
    while (length > 0 && bytes[length - 1] == '\0')
        length--;
    size_t key = before_private_key(bytes, length);
    bool script = false; /* the argument of sh -c */
    for (size_t start = 0; start < key;) {
        const char *nul = memchr(bytes + start, '\0', key - start);
        const char *argument = bytes + start;
        size_t size = nul ? (size_t)(nul - argument) : key - start;
        if (start > 0)
            text_append(out, " ");
        bool header = false;
        bool spaced = false;
        for (size_t i = 0; i < size; i++)
            spaced |= isspace((unsigned char)argument[i]) != 0;
        const char *space = spaced ? strpbrk(argument, " \t\n\v\f\r") : NULL;
        size_t first = space ? (size_t)(space - argument) : size;
        size_t sign = find_assignment(argument, first, &header);
        bool option = sign != (size_t)-1 && (header || argument[sign] == '=') &&
                      memchr(argument, '?', sign) == NULL && memchr(argument, '/', sign) == NULL;
        if (scanner.next == VALUE || scanner.next == HEADER_VALUE) {
            scanner.next = NOTHING;
            text_append(out, MARK);
        } else if (option && !script && size > sign + 1) {
            /* --password=..., NAME=..., Authorization: ...: all of the rest */
            text_append_bytes(out, argument, sign + 1);
            text_append(out, header ? " " MARK : MARK);
        } else {
            scan_line(&scanner, argument, size, out);
            scanner.quote = '\0';
            if (spaced) /* a script ends with its argument */
                scanner.next = NOTHING;
        }
        script = size >= 2 && size <= 5 && argument[0] == '-' && argument[size - 1] == 'c';
        start += size + 1;
    }
    if (key < length)
        text_append(out, "-----BEGIN " MARK);
}
