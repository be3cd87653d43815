#include "process/keyring.h"

#include <errno.h>

#include "process/lsm.h"
#include "sys/calls.h"

struct error *keyring_join(const char *name, const struct procfs *procfs, const struct oci_process *process) {
    lsm_label_keys(procfs, process, true);
    int number = sys_keyctl_join_session(name) < 0 ? errno : 0;
    lsm_label_keys(procfs, process, false);
    if (number == 0 || number == ENOSYS || number == EDQUOT || number == EPERM)
        return NULL;
    return error_system(number, "join", "session keyring %s", name ? name : "");
}
