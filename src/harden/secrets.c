#include "harden/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SAYS(what) "its value has the shape of " what

static const char token_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
static const char word_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char upper_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/* A prefix that issuers give their tokens, and at least `length` bytes of `bytes` after it. */
static const struct {
    const char *prefix;
    size_t length;
    const char *bytes;
    const char *says;
} shapes[] = {
    {"ghp_", 20, word_bytes, SAYS("a GitHub token")},
    {"gho_", 20, word_bytes, SAYS("a GitHub token")},
    {"ghs_", 20, word_bytes, SAYS("a GitHub token")},
    {"ghu_", 20, word_bytes, SAYS("a GitHub token")},
    {"ghr_", 20, word_bytes, SAYS("a GitHub token")},
    {"github_pat_", 20, token_bytes, SAYS("a GitHub token")},
    {"glpat-", 16, token_bytes, SAYS("a GitLab token")},
    {"gldt-", 16, token_bytes, SAYS("a GitLab token")},
    {"glrt-", 16, token_bytes, SAYS("a GitLab token")},
    {"sk-", 20, token_bytes, SAYS("a model provider's key")},
    {"gsk_", 20, word_bytes, SAYS("a model provider's key")},
    {"xai-", 20, word_bytes, SAYS("a model provider's key")},
    {"pplx-", 20, word_bytes, SAYS("a model provider's key")},
    {"hf_", 30, word_bytes, SAYS("a Hugging Face token")},
    {"AKIA", 16, upper_bytes, SAYS("an AWS access key")},
    {"ASIA", 16, upper_bytes, SAYS("an AWS access key")},
    {"AIza", 35, token_bytes, SAYS("a Google key")},
    {"ya29.", 20, token_bytes, SAYS("a Google token")},
    {"xoxb-", 10, token_bytes, SAYS("a Slack token")},
    {"xoxa-", 10, token_bytes, SAYS("a Slack token")},
    {"xoxp-", 10, token_bytes, SAYS("a Slack token")},
    {"xoxr-", 10, token_bytes, SAYS("a Slack token")},
    {"xoxs-", 10, token_bytes, SAYS("a Slack token")},
    {"npm_", 30, word_bytes, SAYS("an npm token")},
    {"pypi-AgE", 20, token_bytes, SAYS("a PyPI token")},
    {"rubygems_", 30, word_bytes, SAYS("a RubyGems token")},
    {"dckr_pat_", 16, token_bytes, SAYS("a Docker token")},
    {"dop_v1_", 30, word_bytes, SAYS("a DigitalOcean token")},
    {"hvs.", 20, token_bytes, SAYS("a Vault token")},
    {"sk_live_", 16, word_bytes, SAYS("a payment provider's key")},
    {"rk_live_", 16, word_bytes, SAYS("a payment provider's key")},
    {"SG.", 40, token_bytes, SAYS("a mail provider's key")},
    {"tskey-", 16, token_bytes, SAYS("a Tailscale key")},
    {"AGE-SECRET-KEY-1", 20, upper_bytes, SAYS("an age key")},
    {"ops_eyJ", 20, token_bytes, SAYS("a password manager's token")},
};

static bool is_word_byte(char byte) {
    return byte != '\0' && strchr(word_bytes, byte) != NULL;
}

static const char *token_shape(const char *value) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        size_t prefix = strlen(shapes[i].prefix);
        for (const char *at = value; (at = strstr(at, shapes[i].prefix)) != NULL; at++) {
            if (at > value && is_word_byte(at[-1])) /* "task-..." is not "sk-..." */
                continue;
            if (strspn(at + prefix, shapes[i].bytes) < shapes[i].length)
                continue;
            /* A word with dashes (sk-learn-something-long-and-plain) has no digit; a key does. */
            size_t length = strspn(at + prefix, shapes[i].bytes);
            if (memchr(shapes[i].bytes, '-', strlen(shapes[i].bytes)) != NULL &&
                strcspn(at + prefix, "0123456789") >= length)
                continue;
            return shapes[i].says;
        }
    }
    return NULL;
}

/* header.payload.signature of RFC 7519: "eyJ" is `{"` in base64url. */
static bool is_web_token(const char *value) {
    for (const char *at = value; (at = strstr(at, "eyJ")) != NULL; at++) {
        if (at > value && is_word_byte(at[-1]))
            continue;
        size_t head = strspn(at, token_bytes);
        if (head < 10 || strncmp(at + head, ".eyJ", 4) != 0)
            continue;
        const char *payload = at + head + 1;
        size_t body = strspn(payload, token_bytes);
        if (payload[body] == '.')
            return true;
    }
    return false;
}

/* scheme://user:password@host (RFC 3986, 3.2.1), and http://token@host; `ssh://git@host` names a user and no
 * secret. */
static bool has_userinfo(const char *value) {
    for (const char *at = value; (at = strstr(at, "://")) != NULL;) {
        at += 3;
        size_t authority = strcspn(at, "/?# \t\n\"'");
        const char *end = at + authority;
        const char *sign = memchr(at, '@', authority);
        for (const char *later = sign; later != NULL;
             later = memchr(later + 1, '@', (size_t)(end - later - 1)))
            sign = later; /* the last one: a password may hold an unescaped @ */
        if (sign == NULL)
            continue;
        const char *colon = memchr(at, ':', (size_t)(sign - at));
        if (colon != NULL && colon + 1 < sign && colon[1] != '$')
            return true;
        bool web = at - value >= 7 && (strncmp(at - 7, "http://", 7) == 0 ||
                                       (at - value >= 8 && strncmp(at - 8, "https://", 8) == 0));
        if (colon == NULL && web && sign - at >= 16)
            return true;
    }
    return false;
}

const char *secret_shape(const char *value) {
    const char *key = strstr(value, "-----BEGIN ");
    if (key != NULL && strstr(key, "PRIVATE KEY") != NULL)
        return SAYS("a private key");
    const char *token = token_shape(value);
    if (token != NULL)
        return token;
    if (is_web_token(value))
        return SAYS("a web token");
    if (has_userinfo(value))
        return SAYS("a URL with a password");
    return NULL;
}
