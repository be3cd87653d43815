/* The environment. An image's Env and the engine's -e arrive merged in process.env, so that inherited cannot
 * be told from intended: names and shapes decide, an explicit grant in the policy wins, and every removal is
 * noted by its name, never by its value. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "harden/parts.h"
#include "harden/secrets.h"
#include "policy/match.h"

#define ENVIRONMENT_RULE "credentials.inherit_user_credentials: false"

/* Names that are credentials whatever their value. */
static const char *const exact[] = {"GITHUB_TOKEN",
                                    "GH_TOKEN",
                                    "GITHUB_API_TOKEN",
                                    "GITHUB_PAT",
                                    "GH_ACCESS_TOKEN",
                                    "GITHUB_PERSONAL_ACCESS_TOKEN",
                                    "COPILOT_GITHUB_TOKEN",
                                    "COPILOT_PROVIDER_API_KEY",
                                    "OPENAI_API_KEY",
                                    "OPENAI_KEY",
                                    "CODEX_API_KEY",
                                    "CODEX_AUTH_*",
                                    "ANTHROPIC_API_KEY",
                                    "ANTHROPIC_AUTH_TOKEN",
                                    "CLAUDE_API_KEY",
                                    "CLAUDE_CODE_OAUTH_TOKEN",
                                    "GEMINI_API_KEY",
                                    "GOOGLE_API_KEY",
                                    "GOOGLE_APPLICATION_CREDENTIALS",
                                    "GOOGLE_SERVICE_ACCOUNT_KEY",
                                    "NVIDIA_API_KEY",
                                    "DEEPINFRA_API_KEY",
                                    "DASHSCOPE_API_KEY",
                                    "AWS_*",
                                    "AZURE_*",
                                    "ARM_CLIENT_SECRET",
                                    "ACTIONS_RUNTIME_TOKEN",
                                    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
                                    "ACTIONS_ID_TOKEN_REQUEST_URL",
                                    "ACTIONS_RESULTS_URL",
                                    "CI_JOB_TOKEN",
                                    "CI_JOB_JWT*",
                                    "OP_SERVICE_ACCOUNT_TOKEN",
                                    "OP_CONNECT_TOKEN",
                                    "OP_CONNECT_HOST",
                                    "OP_SESSION_*",
                                    "MYSQL_PWD",
                                    "REDISCLI_AUTH",
                                    "PGPASSWORD",
                                    "PGPASSFILE",
                                    "PGSERVICEFILE",
                                    "DATABASE_URL",
                                    "REDIS_URL",
                                    "MYSQL_URL",
                                    "VAULT_TOKEN",
                                    "NPM_TOKEN",
                                    "NODE_AUTH_TOKEN",
                                    "NPM_CONFIG_*AUTH*",
                                    "NETRC",
                                    "DOCKER_AUTH_CONFIG",
                                    "SSHPASS",
                                    "BORG_PASSCOMMAND",
                                    "RESTIC_PASSWORD_COMMAND",
                                    "KRB5CCNAME"};

/* No secrets, but ways to one: sockets of agents and daemons, files of keys. */
static const char *const handles[] = {"SSH_AUTH_SOCK",  "SSH_AGENT_PID",   "DOCKER_HOST",
                                      "CONTAINER_HOST", "KUBECONFIG",      "DBUS_SESSION_BUS_ADDRESS",
                                      "XAUTHORITY",     "WAYLAND_DISPLAY", "GPG_AGENT_INFO"};

/* Look-alikes that harm nobody and that programs need; a value with the shape of a secret is one all the
 * same. */
static const char *const harmless[] = {
    "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PAGER", "AWS_DEFAULT_OUTPUT", "AWS_OUTPUT",
    "AWS_SDK_LOAD_CONFIG", "AWS_EXECUTION_ENV", "AWS_EC2_METADATA_DISABLED", "AWS_MAX_ATTEMPTS",
    "AWS_RETRY_MODE", "AWS_CA_BUNDLE", "AWS_STS_REGIONAL_ENDPOINTS", "AWS_CLI_AUTO_PROMPT",
    "AWS_LAMBDA_FUNCTION_*", "AZURE_REGION", "AZURE_LOCATION", "AZURE_CORE_*",
    /* Image builders put the fingerprint that a download was checked with into Env. */
    "GPG_KEY", "GPG_KEYS", "*_GPG_KEY", "*_GPG_KEYS", "*_PGP_KEY*", "*PUBLIC_KEY*", "*PUBKEY*",
    "*PUBLISHABLE_KEY*", "GOPRIVATE", "GONOSUMDB", "GONOSUMCHECK", "MAX_THINKING_TOKENS", "*MAX_*_TOKENS",
    "*MAX_TOKENS", "*_TOKENS_MAX", "TOKENIZERS_PARALLELISM", "TOKENIZER*", "*_TOKENIZER", "*TOKEN_LIMIT",
    "*TOKEN_BUDGET", "*_TOKENS_PER_*", "*TOKEN_COUNT", "*TOKEN_TTL", "*TOKEN_EXPIR*", "KEYBOARD*",
    "*_KEYBOARD*", "KEYMAP*", "KEYCLOAK_VERSION", "KEYTIMEOUT", "KEYRING_BACKEND", "*KEY_SERIALIZER",
    "*KEY_DESERIALIZER", "*KEY_CONVERTER*", "*KEY_LENGTH", "*KEY_SIZE", "*KEY_TYPE", "*KEY_PREFIX",
    "*KEY_ALGORITHM", "*KEYSERVER*", "*PASSWORD_MIN*", "*PASSWORD_MAX*", "*PASSWORD_LENGTH", "*SECRET_NAME",
    "*SECRETS_DIR", "PASSWORD_STORE_ENABLE*", "PWD", "OLDPWD", "BYPASS", "COMPASS*"};

/* Words between underscores. */
static const char *const words[] = {
    "KEY",    "KEYS",    "TOKEN",      "TOKENS",   "SECRET",     "SECRETS",     "PASSWORD", "PASSWORDS",
    "PASSWD", "PASS",    "PASSPHRASE", "PASSCODE", "CREDENTIAL", "CREDENTIALS", "CREDS",    "PRIVATE",
    "DSN",    "ASKPASS", "PWD",        "PAT",      "JWT",        "APIKEY",      "APIKEYS"};

/* Parts that are written together with others: DBPASSWORD, APITOKEN, SSHKEY. Not KEY alone (MONKEY, HOTKEY).
 */
static const char *const parts[] = {"PASSWORD",   "PASSWD",     "PASSPHRASE", "SECRET",
                                    "TOKEN",      "CREDENTIAL", "APIKEY",     "ACCESSKEY",
                                    "PRIVATEKEY", "SECRETKEY",  "SSHKEY",     "AUTHKEY"};

/* What makes a program load or run other code. */
static const char *const loaders[] = {"LD_*",
                                      "DYLD_*",
                                      "GCONV_PATH",
                                      "GLIBC_TUNABLES",
                                      "BASH_ENV",
                                      "ENV",
                                      "CDPATH",
                                      "GLOBIGNORE",
                                      "BASH_FUNC_*",
                                      "PROMPT_COMMAND",
                                      "IFS",
                                      "PYTHONSTARTUP",
                                      "PYTHONPATH",
                                      "PYTHONHOME",
                                      "PYTHONINSPECT",
                                      "NODE_OPTIONS",
                                      "NODE_PATH",
                                      "PERL5OPT",
                                      "PERL5LIB",
                                      "PERL5DB",
                                      "RUBYOPT",
                                      "RUBYLIB",
                                      "GEM_PATH",
                                      "GEM_HOME",
                                      "LUA_INIT*",
                                      "JAVA_TOOL_OPTIONS",
                                      "JDK_JAVA_OPTIONS",
                                      "_JAVA_OPTIONS",
                                      "DOTNET_STARTUP_HOOKS",
                                      "GOFLAGS",
                                      "RUSTC_WRAPPER",
                                      "GIT_SSH",
                                      "GIT_SSH_COMMAND",
                                      "GIT_PROXY_COMMAND",
                                      "GIT_EXTERNAL_DIFF",
                                      "GIT_EXEC_PATH",
                                      "GIT_TEMPLATE_DIR",
                                      "GIT_CONFIG*"};

#define LISTED(list, name) is_listed(list, sizeof(list) / sizeof(list[0]), name)

static bool is_listed(const char *const *patterns, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (match_name(patterns[i], name))
            return true;
    return false;
}

static bool has_word(const char *name) {
    char word[16];
    while (*name != '\0') {
        size_t length = strcspn(name, "_-.");
        if (length > 0 && length < sizeof word) {
            memcpy(word, name, length);
            word[length] = '\0';
            if (LISTED(words, word))
                return true;
        }
        name += length;
        name += strspn(name, "_-.");
    }
    return false;
}

static bool has_part(const char *name) {
    char pattern[24];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t length = strlen(parts[i]);
        pattern[0] = '*';
        memcpy(pattern + 1, parts[i], length);
        memcpy(pattern + 1 + length, "*", 2);
        if (match_name(pattern, name))
            return true;
    }
    return false;
}

/* Values under a suspicious name that can be no secret: switches, and numbers under a plural
 * (MAX_OUTPUT_TOKENS). */
static bool is_no_secret(const char *name, const char *value) {
    static const char *const switches[] = {"true", "false", "yes", "no",   "on",
                                           "off",  "0",     "1",   "none", "null"};
    if (LISTED(switches, value))
        return true;
    if ((match_name("*TOKENS", name) || match_name("*KEYS", name)) &&
        strspn(value, "0123456789") == strlen(value))
        return true;
    /* POSTGRES_PASSWORD_FILE=/run/secrets/db: what the path leads to is judged where it is mounted. */
    if ((match_name("*_FILE", name) || match_name("*_PATH", name) || match_name("*_DIR", name)) &&
        value[0] == '/')
        return true;
    /* GIT_ASKPASS=true and the like: "never ask". */
    return match_name("*ASKPASS", name) &&
           (strcmp(value, "/bin/true") == 0 || strcmp(value, "/bin/false") == 0 ||
            strcmp(value, "echo") == 0 || strcmp(value, "/bin/echo") == 0);
}

static const char loads_code[] = "it makes programs load or run other code";

static bool is_loader(const char *name, const char *value) {
    if (!LISTED(loaders, name))
        return false;
    /* The shell's is a file; many a program has an ENV=production. */
    return !match_name("ENV", name) || strpbrk(value, "/$`") != NULL;
}

const char *harden_environment_reason(const struct policy *policy, const char *name, const char *value) {
    if (match_any_name(&policy->environment.values, name) || value[0] == '\0')
        return NULL;
    if (!policy->loader_variables && is_loader(name, value))
        return loads_code;
    if (policy->inherit_user_credentials)
        return NULL;
    if (!LISTED(harmless, name)) {
        if (LISTED(exact, name))
            return "its name is that of a credential";
        if (LISTED(handles, name))
            return "it leads to an agent, a daemon or a key of the host";
        if ((has_word(name) || has_part(name)) && !is_no_secret(name, value))
            return "its name says that it is a secret";
    }
    return secret_shape(value);
}

/* An image may bring a million of them; so many names are told one by one. */
#define TOLD_MAX 256

static void note_variable(struct hardened *hardened, const char *name, const char *why) {
    const char *rule = why == loads_code ? "processes.loader_variables: false" : ENVIRONMENT_RULE;
    memory_owned char *remedy = harden_remedy("credentials", "environment", name);
    harden_note(hardened, CHANGE_REMOVED, "process.env", name, "credential.env.removed", rule, remedy,
                "environment variable %s was removed: %s", name, why);
}

void harden_environment(struct oci_process *process, const struct policy *policy, struct hardened *hardened) {
    string_list_owned struct string_list told = {0};
    size_t kept = 0;
    size_t untold = 0;
    struct string_list *env = &process->env;
    for (size_t i = 0; i < env->count; i++) {
        const char *equals = strchr(env->items[i], '=');
        size_t length = equals != NULL ? (size_t)(equals - env->items[i]) : strlen(env->items[i]);
        memory_owned char *name = text_formatted("%.*s", (int)length, env->items[i]);
        const char *why = equals != NULL ? harden_environment_reason(policy, name, equals + 1) : NULL;
        if (why == NULL) {
            env->items[kept++] = env->items[i];
            continue;
        }
        /* The value lies in memory that is given back: not for the next one to find. */
        explicit_bzero(env->items[i], strlen(env->items[i]));
        free(env->items[i]);
        if (string_list_contains(&told, name)) /* given twice, told once */
            continue;
        if (told.count >= TOLD_MAX) {
            untold++;
            continue;
        }
        string_list_append(&told, name);
        note_variable(hardened, name, why);
    }
    env->count = kept;
    if (env->items != NULL)
        env->items[kept] = NULL;
    if (untold > 0)
        harden_note(hardened, CHANGE_REMOVED, "process.env", "*", "credential.env.removed", ENVIRONMENT_RULE,
                    NULL, "%zu more environment variables with names or values of credentials were removed",
                    untold);
}
