/* Landlock (landlock(7)): raw calls, and the access rights by their bits, which Debian 12's headers do not
 * all have. */
#pragma once

#include <stdint.h>

/* include/uapi/linux/landlock.h; the comment is the ABI that brought them. */
#define LANDLOCK_FS_EXECUTE (UINT64_C(1) << 0) /* 1 */
#define LANDLOCK_FS_WRITE_FILE (UINT64_C(1) << 1)
#define LANDLOCK_FS_READ_FILE (UINT64_C(1) << 2)
#define LANDLOCK_FS_READ_DIR (UINT64_C(1) << 3)
#define LANDLOCK_FS_REMOVE_DIR (UINT64_C(1) << 4)
#define LANDLOCK_FS_REMOVE_FILE (UINT64_C(1) << 5)
#define LANDLOCK_FS_MAKE_CHAR (UINT64_C(1) << 6)
#define LANDLOCK_FS_MAKE_DIR (UINT64_C(1) << 7)
#define LANDLOCK_FS_MAKE_REG (UINT64_C(1) << 8)
#define LANDLOCK_FS_MAKE_SOCK (UINT64_C(1) << 9)
#define LANDLOCK_FS_MAKE_FIFO (UINT64_C(1) << 10)
#define LANDLOCK_FS_MAKE_BLOCK (UINT64_C(1) << 11)
#define LANDLOCK_FS_MAKE_SYM (UINT64_C(1) << 12)
#define LANDLOCK_FS_REFER (UINT64_C(1) << 13)    /* 2 */
#define LANDLOCK_FS_TRUNCATE (UINT64_C(1) << 14) /* 3 */

/* A ruleset that handles these rights: what no rule allows is denied. -1 with ENOSYS or EOPNOTSUPP where the
 * machine has no Landlock, EINVAL for a right that it does not know. */
int sys_landlock_create(uint64_t handled);
/* Allows rights on a file, or on everything below a directory. -1 with EINVAL for a directory's rights on a
 * file, EBADFD for what is on no file system that has paths (pipes, sockets). */
int sys_landlock_allow(int ruleset, int fd, uint64_t rights);
/* For this thread and its children, in addition to what already holds. Needs no_new_privs or CAP_SYS_ADMIN.
 */
int sys_landlock_restrict(int ruleset);
