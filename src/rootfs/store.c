#include "rootfs/store.h"

#include <sys/mount.h>

#include "base/fd.h"
#include "base/text.h"
#include "rootfs/attach.h"
#include "sys/calls.h"

struct error *store_open(int staging, int *out) {
    string_list_owned struct string_list data = {0};
    string_list_append(&data, "size=768k");
    string_list_append(&data, "mode=755");
    fd_owned int store = -1;
    TRY(mount_new("tmpfs", "tmpfs", &data, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &store));
    TRY(mount_attach(store, staging, "the runtime's store"));
    *out = fd_take(&store);
    return NULL;
}

struct error *store_close(int store) {
    return mount_detach(store, "the runtime's store");
}
