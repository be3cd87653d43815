#include "libocispec/spec_document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "cgroup/cgroup.h"
#include "cli/cli.h"
#include "cli/options.h"

/* Writes config.json, as runc and crun do; an existing one is kept. */
struct error *spec_command(const struct global_options *global, int argc, char **argv, int *exit_status) {
    (void)global;
    (void)exit_status;
    bool rootless = false, help;
    const char *bundle = ".", *file = "config.json";
    int first;
    const struct option options[] = {{"bundle", 'b', OPTION_VALUE, &bundle, "where to write it (.)"},
                                     {"config", 'f', OPTION_VALUE, &file, "its name, - for standard output"},
                                     {"rootless", 0, OPTION_FLAG, &rootless, "for a user without privileges"},
                                     {NULL, 0, OPTION_FLAG, NULL, NULL}};
    TRY(options_parse_anywhere("spec", options, argc, argv, &first, &help));
    if (help) {
        options_print("pinfold spec [OPTIONS]", options);
        return NULL;
    }
    json_owned struct json_writer json = {0};
    /* Beside hierarchies of v1 as runc and crun have it: the container's cgroups by the machine's names. */
    oci_spec_document(rootless, geteuid(), getegid(), cgroup_layout() == CGROUP_LAYOUT_V2, &json);
    text_owned struct text text = {0};
    oci_document_indent(text_string(&json.text), &text);
    if (file[0] == '-' && file[1] == '\0') {
        fputs(text_string(&text), stdout);
        return NULL;
    }
    memory_owned char *path = text_formatted("%s/%s", bundle, file);
    fd_owned int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        return error_new(ERROR_INVALID, "%s exists; remove it first", path);
    if (fd < 0)
        return error_system(errno, "create", "%s", path);
    return fd_write_all(fd, text_string(&text), text.length, path);
}
