/* A library to preload that stands between a process and its files.
 *
 * AQMLAB_TEST_LOG=FILE   writes to FILE, in order, what is done to files below AQMLAB_TEST_ROOT:
 *                        tests/power.py makes of it what a disk may hold after a power failure.
 * AQMLAB_TEST_NO_LOCKS=N flock fails with the error number N, as on file systems without locks.
 * AQMLAB_TEST_LOST=1     every other rename is done and then told as failed (ENOENT): a network
 *                        file system whose answer was lost and whose client asked again.
 *
 * A record of the log: kind (1 byte), inode, offset (8 bytes each), two lengths (4 bytes each), then
 * as many bytes. Kinds: O open to write (path), W write (data), T truncate to offset, F fsync,
 * S syncfs, R rename (from, to), M mkdir (path), U unlink (path), D rmdir (path). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;
static const char *root;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("AQMLAB_TEST_LOG");
    root = getenv("AQMLAB_TEST_ROOT");
    if (path && root)
        log_file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

/* One act at a time, in all processes: the order of the log is the order of the acts. */
static void enter(void)
{
    pthread_mutex_lock(&mutex);
    if (log_file >= 0)
        syscall(SYS_flock, log_file, LOCK_EX);
}

static void leave(void)
{
    int kept = errno;
    if (log_file >= 0)
        syscall(SYS_flock, log_file, LOCK_UN);
    pthread_mutex_unlock(&mutex);
    errno = kept;
}

static void note(char kind, uint64_t inode, uint64_t offset, const void *one, uint32_t one_len,
                 const void *two, uint32_t two_len)
{
    int kept = errno;
    char head[25];
    head[0] = kind;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &offset, 8);
    memcpy(head + 17, &one_len, 4);
    memcpy(head + 21, &two_len, 4);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)one, one_len}, {(void *)two, two_len}};
    if (syscall(SYS_writev, log_file, parts, 3) < 0)
        abort();
    errno = kept;
}

/* The absolute path of a name in an open folder; whether it lies below the root. */
static int below(int folder, const char *name, char *path)
{
    char base[PATH_MAX] = "";
    if (log_file < 0)
        return 0;
    if (name[0] != '/') {
        char link[64];
        ssize_t length;
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        length = readlink(link, base, sizeof base - 2);
        if (length < 0)
            return 0;
        base[length] = '/';
        base[length + 1] = 0;
    }
    if (snprintf(path, PATH_MAX, "%s%s", base, name) >= PATH_MAX)
        return 0;
    return strncmp(path, root, strlen(root)) == 0;
}

/* The inode of an open file below the root; 0 for others. */
static uint64_t inode_of(int file)
{
    char link[64], path[PATH_MAX];
    struct stat about;
    ssize_t length;
    if (log_file < 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (strncmp(path, root, strlen(root)) || fstat(file, &about))
        return 0;
    return about.st_ino;
}

static int opened(int folder, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    enter();
    int file = syscall(SYS_openat, folder, name, flags, mode);
    int writes = (flags & O_ACCMODE) != O_RDONLY && (flags & O_TMPFILE) != O_TMPFILE;
    if (file >= 0 && writes && below(folder, name, path)) {
        struct stat about;
        fstat(file, &about);
        note('O', about.st_ino, 0, path, strlen(path), "", 0);
        if (flags & O_TRUNC)
            note('T', about.st_ino, 0, "", 0, "", 0);
    }
    leave();
    return file;
}

#define MODE(flags, last) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, last); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int open(const char *name, int flags, ...) { MODE(flags, flags) return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags, flags) return opened(AT_FDCWD, name, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE(flags, flags) return opened(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE(flags, flags) return opened(folder, name, flags | O_LARGEFILE, mode); }

/* Where the next write to a file goes. */
static uint64_t place(int file)
{
    struct stat about;
    if (fcntl(file, F_GETFL) & O_APPEND)
        return fstat(file, &about) ? 0 : about.st_size;
    off_t at = lseek(file, 0, SEEK_CUR);
    return at < 0 ? 0 : at;
}

ssize_t write(int file, const void *data, size_t length)
{
    uint64_t inode = inode_of(file);
    if (!inode)
        return syscall(SYS_write, file, data, length);
    enter();
    uint64_t at = place(file);
    ssize_t done = syscall(SYS_write, file, data, length);
    if (done > 0)
        note('W', inode, at, data, done, "", 0);
    leave();
    return done;
}

/* Fewer bytes than asked for is what a write may do. */
ssize_t writev(int file, const struct iovec *parts, int count)
{
    if (!inode_of(file) || count == 0)
        return syscall(SYS_writev, file, parts, count);
    while (count > 1 && parts->iov_len == 0)
        parts++, count--;
    return write(file, parts->iov_base, parts->iov_len);
}

static ssize_t written_at(int file, const void *data, size_t length, off_t at)
{
    uint64_t inode = inode_of(file);
    enter();
    ssize_t done = syscall(SYS_pwrite64, file, data, length, at);
    if (inode && done > 0)
        note('W', inode, at, data, done, "", 0);
    leave();
    return done;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t at) { return written_at(file, data, length, at); }
ssize_t pwrite64(int file, const void *data, size_t length, off64_t at) { return written_at(file, data, length, at); }

static int truncated(int file, off_t length)
{
    uint64_t inode = inode_of(file);
    enter();
    int done = syscall(SYS_ftruncate, file, length);
    if (inode && done == 0)
        note('T', inode, length, "", 0, "", 0);
    leave();
    return done;
}

int ftruncate(int file, off_t length) { return truncated(file, length); }
int ftruncate64(int file, off64_t length) { return truncated(file, length); }

/* The disk of a test need not wait for a real one. */
static int synced(char kind, int number, int file)
{
    uint64_t inode = inode_of(file);
    if (!inode)
        return syscall(number, file);
    enter();
    note(kind, inode, 0, "", 0, "", 0);
    leave();
    return 0;
}

int fsync(int file) { return synced('F', SYS_fsync, file); }
int fdatasync(int file) { return synced('F', SYS_fdatasync, file); }
int syncfs(int file) { return synced('S', SYS_syncfs, file); }

static int renamed(int from_folder, const char *from, int to_folder, const char *to)
{
    static int count;
    char one[PATH_MAX], two[PATH_MAX];
    enter();
    int done = syscall(SYS_renameat, from_folder, from, to_folder, to);
    if (done == 0 && below(from_folder, from, one) && below(to_folder, to, two))
        note('R', 0, 0, one, strlen(one), two, strlen(two));
    int lost = done == 0 && getenv("AQMLAB_TEST_LOST") && count++ % 2;
    leave();
    if (lost) {
        errno = ENOENT;
        return -1;
    }
    return done;
}

int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_folder, const char *from, int to_folder, const char *to) { return renamed(from_folder, from, to_folder, to); }

static int made(int folder, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    enter();
    int done = syscall(SYS_mkdirat, folder, name, mode);
    if (done == 0 && below(folder, name, path)) {
        struct stat about;
        stat(path, &about);
        note('M', about.st_ino, 0, path, strlen(path), "", 0);
    }
    leave();
    return done;
}

int mkdir(const char *name, mode_t mode) { return made(AT_FDCWD, name, mode); }
int mkdirat(int folder, const char *name, mode_t mode) { return made(folder, name, mode); }

static int removed(int folder, const char *name, int flags)
{
    char path[PATH_MAX];
    enter();
    int known = below(folder, name, path);
    int done = syscall(SYS_unlinkat, folder, name, flags);
    if (done == 0 && known)
        note(flags & AT_REMOVEDIR ? 'D' : 'U', 0, 0, path, strlen(path), "", 0);
    leave();
    return done;
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }
int unlinkat(int folder, const char *name, int flags) { return removed(folder, name, flags); }

int flock(int file, int how)
{
    const char *number = getenv("AQMLAB_TEST_NO_LOCKS");
    if (number) {
        errno = atoi(number);
        return -1;
    }
    return syscall(SYS_flock, file, how);
}
