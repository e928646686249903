// Preloaded by errno_grid.py: makes short writes, and lets opens fail, in one folder only.
//
// FAULT_FOLDER   the folder, absolute
// FAULT_LOG      a line for each fault: its number, bytes or 0, path; after faults of opens also one for each open that
//                was let through, with 1 for the bytes
// FAULT_AT       the number of the call, from 1, over all threads; 0 makes no fault and logs every call that would count
// FAULT_ALWAYS   set: from that call on, so many faults
// FAULT_ERRNO    0 for short writes (half of the bytes is written); else opens fail with it. Those that create a file are
//                counted; with FAULT_ALWAYS all others fail as well once the time has come
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long seen, faults;

static long setting(const char *name) {
  const char *text = getenv(name);
  return text ? atol(text) : 0;
}

static int is_inside(const char *path) {
  const char *folder = getenv("FAULT_FOLDER");
  return folder && strncmp(path, folder, strlen(folder)) == 0;
}

// The path behind a descriptor; empty when there is none.
static const char *behind(int fd, char *buffer, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, buffer, size - 1);
  buffer[length < 0 ? 0 : length] = 0;
  return buffer;
}

static void note(long number, size_t count, const char *path) {
  char line[4400];
  int size = snprintf(line, sizeof line, "%ld %zu %s\n", number, count, path);
  ssize_t (*write_really)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  int (*open_really)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int out = open_really(getenv("FAULT_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (out < 0) return;
  (void)!write_really(out, line, size);
  close(out);
}

// Counts a call if it is to be counted; true when the fault falls on it.
static int falls(int counts, size_t bytes, const char *path) {
  long at = setting("FAULT_AT");
  long number = counts ? __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST) : __atomic_load_n(&seen, __ATOMIC_SEQ_CST);
  int hit = at > 0 && (getenv("FAULT_ALWAYS") ? number >= at : counts && number == at);
  if (hit && getenv("FAULT_ALWAYS") && __atomic_add_fetch(&faults, 1, __ATOMIC_SEQ_CST) > setting("FAULT_ALWAYS")) hit = 0;
  int is_later = !hit && counts && at > 0 && number > at && setting("FAULT_ERRNO") != 0;
  if (hit || is_later || (at == 0 && counts)) note(number, is_later ? 1 : bytes, path);
  return hit;
}

static size_t cut(int fd, size_t count) {
  char path[4096];
  if (setting("FAULT_ERRNO") != 0 || !is_inside(behind(fd, path, sizeof path))) return count;
  return falls(1, count, path) && count > 1 ? count / 2 : count;
}

static int refuses(int directory, const char *path, int flags) {
  char full[8192];
  if (setting("FAULT_ERRNO") == 0) return 0;
  if (path[0] == '/') {
    snprintf(full, sizeof full, "%s", path);
  } else {
    behind(directory, full, 4096);
    snprintf(full + strlen(full), 4096, "/%s", path);
  }
  if (!is_inside(full) || !falls((flags & O_CREAT) != 0, 0, full)) return 0;
  errno = (int)setting("FAULT_ERRNO");
  return 1;
}

#define WRITE_AT(NAME, OFFSET) \
  ssize_t NAME(int fd, const void *bytes, size_t count, OFFSET offset) { \
    ssize_t (*real)(int, const void *, size_t, OFFSET) = dlsym(RTLD_NEXT, #NAME); \
    return real(fd, bytes, cut(fd, count), offset); \
  }
WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)

ssize_t write(int fd, const void *bytes, size_t count) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  return real(fd, bytes, cut(fd, count));
}

#define MODE(FLAGS) \
  va_list rest; \
  va_start(rest, FLAGS); \
  mode_t mode = va_arg(rest, mode_t); \
  va_end(rest)
#define OPEN(NAME) \
  int NAME(const char *path, int flags, ...) { \
    MODE(flags); \
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #NAME); \
    return refuses(AT_FDCWD, path, flags) ? -1 : real(path, flags, mode); \
  }
#define OPEN_AT(NAME) \
  int NAME(int directory, const char *path, int flags, ...) { \
    MODE(flags); \
    int (*real)(int, const char *, int, ...) = dlsym(RTLD_NEXT, #NAME); \
    return refuses(directory, path, flags) ? -1 : real(directory, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

long syscall(long number, ...) {
  long a[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
  va_end(rest);
  long (*real)(long, ...) = dlsym(RTLD_NEXT, "syscall");
  if (number == SYS_openat2 && refuses((int)a[0], (const char *)a[1], (int)*(unsigned long *)a[2])) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
