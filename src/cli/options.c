#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static const struct option *option_find(const struct option *options, const char *word, size_t length) {
    for (; options->name != NULL; options++) {
        if (strlen(options->name) == length && strncmp(options->name, word, length) == 0)
            return options;
        if (length == 1 && options->letter == word[0])
            return options;
    }
    return NULL;
}

static bool takes_value(const struct option *option) {
    return option->kind == OPTION_VALUE || option->kind == OPTION_LIST ||
           option->kind == OPTION_IGNORED_VALUE;
}

static void option_set(const struct option *option, const char *value) {
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->target = value == NULL || strcmp(value, "false") != 0;
        break;
    case OPTION_VALUE:
        *(const char **)option->target = value;
        break;
    case OPTION_LIST:
        string_list_append(option->target, value);
        break;
    case OPTION_IGNORED_FLAG:
    case OPTION_IGNORED_VALUE:
        break;
    }
}

/* Letters together as getopt(3) has them: "-dt", "-bDIR", "-db DIR". Nothing is set unless all are known. */
static bool letters_set(const struct option *options, const char *word, const char *next, int *index) {
    for (int setting = 0; setting < 2; setting++)
        for (const char *letter = word; *letter != '\0'; letter++) {
            const struct option *option = option_find(options, letter, 1);
            if (option == NULL || option->letter != *letter)
                return false;
            bool value = takes_value(option);
            const char *given = letter[1] != '\0' ? letter + 1 : next;
            if (value && given == NULL)
                return false;
            if (setting == 1)
                option_set(option, value ? given : NULL);
            if (value && setting == 1 && letter[1] == '\0')
                ++*index;
            if (value)
                break;
        }
    return true;
}

struct error *options_parse(const char *command, const struct option *options, int argc, char **argv,
                            int *first, bool *help) {
    *help = false;
    int index = 1;
    for (; index < argc; index++) {
        const char *word = argv[index];
        if (word[0] != '-' || word[1] == '\0')
            break;
        if (strcmp(word, "--") == 0) {
            index++;
            break;
        }
        word += word[1] == '-' ? 2 : 1;
        size_t length = strcspn(word, "=");
        if (strcmp(word, "help") == 0 || strcmp(word, "h") == 0) {
            *help = true;
            continue;
        }
        const struct option *option = option_find(options, word, length);
        if (option == NULL && argv[index][1] != '-' &&
            letters_set(options, word, index + 1 < argc ? argv[index + 1] : NULL, &index))
            continue;
        if (option == NULL)
            return error_new(ERROR_USAGE, "%s: unknown option %s (see %s --help)", command, argv[index],
                             command);
        const char *value = word[length] == '=' ? word + length + 1 : NULL;
        if (takes_value(option) && value == NULL) {
            if (index + 1 >= argc)
                return error_new(ERROR_USAGE, "%s: option --%s requires an argument", command, option->name);
            value = argv[++index];
        }
        option_set(option, value);
    }
    *first = index;
    return NULL;
}

struct error *options_parse_anywhere(const char *command, const struct option *options, int argc, char **argv,
                                     int *first, bool *help) {
    memory_owned char **words = memory_zeroed((size_t)argc * sizeof *words);
    int count = 0, parsed = 1, start = 0; /* options are kept in argv[1] to argv[parsed - 1] */
    bool any_help = false, ended = false;
    while (start + 1 < argc) {
        int stop;
        TRY(options_parse(command, options, argc - start, argv + start, &stop, help));
        any_help = any_help || *help;
        stop += start;
        ended = ended || strcmp(argv[stop - 1], "--") == 0;
        for (int i = start + 1; i < stop; i++)
            argv[parsed++] = argv[i];
        if (ended)
            for (; stop < argc; stop++)
                words[count++] = argv[stop];
        else if (stop < argc)
            words[count++] = argv[stop];
        start = stop;
    }
    for (int i = 0; i < count; i++)
        argv[parsed + i] = words[i];
    *first = parsed;
    *help = any_help;
    return NULL;
}

void options_print(const char *usage, const struct option *options) {
    printf("usage: %s\n", usage);
    for (; options->name != NULL; options++) {
        if (options->help == NULL)
            continue;
        char letter[8] = "    ";
        if (options->letter)
            snprintf(letter, sizeof letter, "-%c, ", options->letter);
        printf("  %s--%-22s %s\n", letter, options->name, options->help);
    }
}
