#include "process/binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/calls.h"

#define OWN_FILE "/proc/self/exe"
#define SEGMENTS_MAX 24

extern const ElfW(Ehdr) __ehdr_start;

/* ---- the clone ---- */

/* Whether somebody in a container could write to this file, were he let: its owner, or root. */
static struct error *is_writable(bool *out) {
    struct statfs system;
    struct stat file;
    if (statfs(OWN_FILE, &system) < 0 || stat(OWN_FILE, &file) < 0)
        return error_system(errno, "look at", OWN_FILE);
    bool others = file.st_uid != 0 && file.st_uid != geteuid(); /* one of our subordinate ids, maybe */
    *out = ((unsigned long)system.f_flags & ST_RDONLY) == 0 &&
           (others || faccessat(AT_FDCWD, OWN_FILE, W_OK, AT_EACCESS) == 0);
#ifdef PINFOLD_FAULT_POINTS
    if (getenv("PINFOLD_UNGUARDED") != NULL) /* the attack's own test */
        *out = false;
#endif
    return NULL;
}

/* An O_PATH descriptor of the file on a read-only mount that is attached nowhere. */
static struct error *clone_make(int *out) {
    fd_owned int tree = sys_open_tree(AT_FDCWD, OWN_FILE, OPEN_TREE_CLONE);
    const struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    if (tree < 0 || sys_mount_setattr(tree, "", AT_EMPTY_PATH, &read_only) < 0)
        return error_system(errno, "clone", "the runtime's own file read-only");
    *out = fd_take(&tree);
    return NULL;
}

/* Neither without CONFIG_CHECKPOINT_RESTORE nor by an ordinary user, who may not clone a mount; nor with
 * AddressSanitizer, which does not want its data moved. */
static bool can_change_over(void) {
#ifdef __SANITIZE_ADDRESS__
    return false;
#endif
    unsigned size = 0;
    return geteuid() == 0 && prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0) == 0;
}

struct error *binary_guard_open(int *fd) {
    bool writable = false;
    *fd = -1;
    if (!can_change_over())
        return NULL; /* binary_execute_guarded has seen to it */
    TRY(is_writable(&writable));
    if (!writable)
        return NULL;
    fd_owned int tree = -1;
    char path[64];
    TRY(clone_make(&tree));
    snprintf(path, sizeof path, "/proc/self/fd/%d", tree);
    /* The mount goes out of every namespace when `tree` is closed; this descriptor keeps it alive. */
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    return *fd < 0 ? error_system(errno, "open", "the runtime's own file") : NULL;
}

/* ---- changing over ---- */

struct segment {
    uintptr_t start, end; /* of what is mapped from the file, whole pages */
    off_t offset;
    int protection;
    bool writable;
};

struct image {
    struct segment segments[SEGMENTS_MAX];
    size_t count;
    uintptr_t relro_start, relro_end; /* written by the loader, read-only since */
};

static struct error *image_read(struct image *out) {
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    uintptr_t page = getauxval(AT_PAGESZ), base = (uintptr_t)&__ehdr_start;
    *out = (struct image){0};
    if (__ehdr_start.e_type == ET_EXEC)
        base = 0;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Phdr) *header = &headers[i];
        uintptr_t start = (base + header->p_vaddr) & ~(page - 1);
        if (header->p_type == PT_GNU_RELRO) {
            out->relro_start = start;
            out->relro_end = (base + header->p_vaddr + header->p_memsz) & ~(page - 1);
        }
        if (header->p_type != PT_LOAD || header->p_filesz == 0)
            continue;
        if (out->count == SEGMENTS_MAX)
            return error_new(ERROR_UNAVAILABLE, "the runtime's own file has too many segments");
        out->segments[out->count++] = (struct segment){
            .start = start,
            .end = (base + header->p_vaddr + header->p_filesz + page - 1) & ~(page - 1),
            .offset = (off_t)(header->p_offset & ~(page - 1)),
            .protection = PROT_READ | ((header->p_flags & PF_X) != 0 ? PROT_EXEC : 0),
            .writable = (header->p_flags & PF_W) != 0,
        };
    }
    return NULL;
}

/* The same pages from the other mount. What is code here goes on in the same code: the kernel puts the one
 * mapping in the place of the other in one step. */
static bool segment_map(const struct segment *segment, int fd) {
    size_t length = segment->end - segment->start;
    void *place = (void *)segment->start; // NOLINT(performance-no-int-to-ptr)
    if (!segment->writable)
        return mmap(place, length, segment->protection, MAP_PRIVATE | MAP_FIXED, fd, segment->offset) !=
               MAP_FAILED;
    /* Data is this process's own by now: its bytes move to memory that belongs to no file. Nothing between
     * the copy and the move writes to it. */
    void *copy =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (copy == MAP_FAILED)
        return false;
    memcpy(copy, place, length);
    return mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED;
}

/* What the kernel wants to know with it again: where this process's parts are. Of what can be asked nowhere
 * but in /proc (which is the container's by now, maybe) it gets a harmless value: the heap cannot shrink
 * below where it ends now. */
static struct error *executable_set(int fd) {
    uintptr_t end = (uintptr_t)sbrk(0);
    uintptr_t code = (uintptr_t)&__ehdr_start;
    uintptr_t arguments = (uintptr_t)program_invocation_name;
    uintptr_t last = getauxval(AT_EXECFN); /* right behind the environment, on the stack */
    bool known = arguments != 0 && arguments < last;
    uintptr_t environment = environ[0] != NULL ? (uintptr_t)environ[0] : last;
    if (!known || environment < arguments || environment > last)
        environment = last;
    struct prctl_mm_map map = {
        .start_code = code,
        .end_code = code + 1,
        .start_data = code,
        .end_data = code + 1,
        .start_brk = end,
        .brk = end,
        .start_stack = last,
        .arg_start = known ? arguments : last,
        .arg_end = environment,
        .env_start = environment,
        .env_end = last,
        .exe_fd = (uint32_t)fd,
    };
    if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0) < 0)
        return error_system(errno, "change over", "to a read-only clone of the runtime's own file");
    return NULL;
}

struct error *binary_guard_enter(int fd) {
    struct image image;
    if (fd < 0)
        return NULL;
    TRY(image_read(&image));
    for (size_t i = 0; i < image.count; i++)
        if (!segment_map(&image.segments[i], fd))
            return error_system(errno, "map", "the runtime's own file from a read-only clone");
    if (image.relro_end > image.relro_start)
        (void)!mprotect((void *)image.relro_start,
                        image.relro_end - image.relro_start, // NOLINT(performance-no-int-to-ptr)
                        PROT_READ); /* a second layer; it cannot fail but for want of memory */
    return executable_set(fd);
}

/* ---- without PR_SET_MM_MAP ---- */

static bool is_sealed_copy(void) {
    fd_owned int own = open(OWN_FILE, O_RDONLY | O_CLOEXEC);
    int seals = own < 0 ? -1 : fcntl(own, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE) != 0;
}

static struct error *copy_make(int *out) {
    fd_owned int own = open(OWN_FILE, O_RDONLY | O_CLOEXEC);
    fd_owned int copy = sys_memfd_executable("pinfold");
    struct stat status;
    if (own < 0 || copy < 0 || fstat(own, &status) < 0)
        return error_system(errno, "copy", "the runtime's own file");
    for (off_t left = status.st_size; left > 0;) {
        ssize_t sent = sendfile(copy, own, NULL, (size_t)left);
        if (sent <= 0)
            return error_system(sent < 0 ? errno : EIO, "copy", "the runtime's own file");
        left -= sent;
    }
    if (fcntl(copy, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return error_system(errno, "seal", "a copy of the runtime's own file");
    *out = fd_take(&copy);
    return NULL;
}

struct error *binary_execute_guarded(char *const *arguments) {
    bool writable = false;
    if (can_change_over())
        return NULL;
    TRY(is_writable(&writable));
    if (!writable || is_sealed_copy())
        return NULL;
    fd_owned int file = -1;
    struct error *error = clone_make(&file);
    if (error != NULL) {
        error_ignore(error);
        TRY(copy_make(&file));
    }
    sys_execveat(file, "", arguments, environ, AT_EMPTY_PATH);
    return error_system(errno, "execute", "a read-only copy of the runtime's own file");
}
