/* A disk that fails at one call: a library for LD_PRELOAD that counts the calls that change files below a folder,
 * records them, and fails one of them, once.
 *
 * `disk_start` begins to count; `disk_stop` ends it. The record has a line for each call: "!" if it failed, the kind
 * of the call, a tab, and the path. Lance, Rust and Python all call these functions of the C library. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static volatile int record = -1;
static long count, failing;
static int error;

/* Count the calls below `path`, write them to the file `record_path`, and fail the call `call` (from 1; 0: none). */
int disk_start(const char *path, const char *record_path, long call, int with_error) {
    int file = syscall(SYS_openat, AT_FDCWD, record_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    pthread_mutex_lock(&lock);
    snprintf(folder, sizeof folder, "%s/", path);
    count = 0;
    failing = call;
    error = with_error;
    record = file;
    pthread_mutex_unlock(&lock);
    return file < 0 ? -1 : 0;
}

void disk_stop(void) {
    pthread_mutex_lock(&lock);
    int file = record;
    record = -1;
    pthread_mutex_unlock(&lock);
    if (file >= 0) syscall(SYS_close, file);
}

/* Return the path of an open file or folder; false if it has none. */
static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

/* Count a call on an absolute path; return true, with `errno`, if it is the one that fails. */
static int fails(const char *kind, const char *path) {
    char line[PATH_MAX + 32];
    int is_failing = 0;
    pthread_mutex_lock(&lock);
    if (record >= 0) {
        size_t length = strlen(folder);
        if (strncmp(path, folder, length) == 0 || strlen(path) + 1 == length && strncmp(path, folder, length - 1) == 0) {
            is_failing = ++count == failing;
            int size = snprintf(line, sizeof line, "%s%s\t%s\n", is_failing ? "!" : "", kind, path);
            syscall(SYS_write, record, line, size);
        }
    }
    pthread_mutex_unlock(&lock);
    if (is_failing) errno = error;
    return is_failing;
}

static int fails_at(const char *kind, int base, const char *path) {
    char whole[2 * PATH_MAX];
    if (record < 0) return 0;
    if (path[0] == '/') return fails(kind, path);
    if (base == AT_FDCWD ? !getcwd(whole, PATH_MAX) : !path_of(base, whole)) return 0;
    size_t length = strlen(whole);
    snprintf(whole + length, sizeof whole - length, "/%s", path);
    return fails(kind, whole);
}

static int fails_on(const char *kind, int fd) {
    char path[PATH_MAX];
    return record >= 0 && path_of(fd, path) && fails(kind, path);
}

/* Define a function that fails if `condition`, and otherwise calls the one of the C library. */
#define WRAP(result, name, parameters, arguments, condition)                  \
    result name parameters {                                                  \
        static result(*next) parameters;                                      \
        if (!next) next = (result(*) parameters)dlsym(RTLD_NEXT, #name);      \
        if (condition) return -1;                                             \
        return next arguments;                                                \
    }

#define WRAP_OPEN(name, parameters, arguments, base)                          \
    int name parameters {                                                     \
        static int(*next) parameters;                                         \
        mode_t mode = 0;                                                      \
        if (flags & (O_CREAT | O_TMPFILE)) {                                  \
            va_list rest;                                                     \
            va_start(rest, flags);                                            \
            mode = va_arg(rest, mode_t);                                      \
            va_end(rest);                                                     \
        }                                                                     \
        if (!next) next = (int(*) parameters)dlsym(RTLD_NEXT, #name);         \
        if (flags & O_CREAT && fails_at("create", base, path)) return -1;     \
        return next arguments;                                                \
    }

WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
WRAP_OPEN(openat, (int base, const char *path, int flags, ...), (base, path, flags, mode), base)
WRAP_OPEN(openat64, (int base, const char *path, int flags, ...), (base, path, flags, mode), base)

WRAP(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), fails_on("write", fd))
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), fails_on("write", fd))
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), fails_on("write", fd))
WRAP(ssize_t, writev, (int fd, const struct iovec *data, int size), (fd, data, size), fails_on("write", fd))
WRAP(ssize_t, sendfile, (int fd, int from, off_t *at, size_t size), (fd, from, at, size), fails_on("write", fd))
WRAP(ssize_t, sendfile64, (int fd, int from, off64_t *at, size_t size), (fd, from, at, size), fails_on("write", fd))
WRAP(ssize_t, copy_file_range, (int from, off64_t *at, int fd, off64_t *to, size_t size, unsigned flags),
     (from, at, fd, to, size, flags), fails_on("write", fd))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), fails_on("truncate", fd))
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), fails_on("truncate", fd))
WRAP(int, fsync, (int fd), (fd), fails_on("fsync", fd))
WRAP(int, fdatasync, (int fd), (fd), fails_on("fsync", fd))
WRAP(int, rename, (const char *from, const char *to), (from, to), fails_at("rename", AT_FDCWD, to))
WRAP(int, renameat, (int base, const char *from, int other, const char *to), (base, from, other, to),
     fails_at("rename", other, to))
WRAP(int, renameat2, (int base, const char *from, int other, const char *to, unsigned flags),
     (base, from, other, to, flags), fails_at("rename", other, to))
WRAP(int, link, (const char *from, const char *to), (from, to), fails_at("link", AT_FDCWD, to))
WRAP(int, linkat, (int base, const char *from, int other, const char *to, int flags), (base, from, other, to, flags),
     fails_at("link", other, to))
WRAP(int, unlink, (const char *path), (path), fails_at("unlink", AT_FDCWD, path))
WRAP(int, unlinkat, (int base, const char *path, int flags), (base, path, flags), fails_at("unlink", base, path))
WRAP(int, rmdir, (const char *path), (path), fails_at("unlink", AT_FDCWD, path))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), fails_at("mkdir", AT_FDCWD, path))
WRAP(int, mkdirat, (int base, const char *path, mode_t mode), (base, path, mode), fails_at("mkdir", base, path))
