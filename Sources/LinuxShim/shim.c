#define _GNU_SOURCE
#include "LinuxShim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x00001000U
#endif

#define RETRY(call)                       \
  ({                                      \
    __typeof__(call) value;               \
    do {                                  \
      value = (call);                     \
    } while (value == -1 && errno == EINTR); \
    value;                                \
  })

#define RESULT(call) (RETRY(call) == -1 ? -errno : 0)

static const int max_walks = 64;

// SIGUSR1 asks how far Tarn is, and its default action would end the process. Blocked before main, and before the
// initialisers of all libraries; what comes until somebody waits for it stays pending.
static void block_question(void) {
  sigset_t question;
  sigemptyset(&question);
  sigaddset(&question, SIGUSR1);
  sigprocmask(SIG_BLOCK, &question, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = block_question;

// The layout that the kernel writes (getdents64(2)); glibc names it only since 2.30 and as `dirent64`.
struct record {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

int tarn_open_beneath(int directory, const char *path, int flags, unsigned mode) {
  struct open_how how = {
      .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
      .mode = mode,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
  };
  for (int walk = 0;; walk++) {
    long descriptor = syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (descriptor >= 0) return (int)descriptor;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || walk >= max_walks) return -errno;
  }
}

int tarn_open_at(int directory, const char *name, int flags, unsigned mode) {
  int descriptor = RETRY(openat(directory, name, flags | O_CLOEXEC, (mode_t)mode));
  return descriptor == -1 ? -errno : descriptor;
}

int tarn_close(int descriptor) {
  // Linux has released the descriptor even when close answers EINTR: never call it again.
  return close(descriptor) == -1 ? -errno : 0;
}

static int get_stat(int directory, const char *name, int flags, struct tarn_stat *result) {
  struct statx raw;
  if (RETRY(statx(directory, name, flags, STATX_BASIC_STATS | STATX_MNT_ID, &raw)) == -1) return -errno;
  *result = (struct tarn_stat){
      .device = makedev(raw.stx_dev_major, raw.stx_dev_minor),
      .inode = raw.stx_ino,
      .size = raw.stx_size,
      .modified_seconds = raw.stx_mtime.tv_sec,
      .changed_seconds = raw.stx_ctime.tv_sec,
      .modified_nanoseconds = raw.stx_mtime.tv_nsec,
      .changed_nanoseconds = raw.stx_ctime.tv_nsec,
      .mode = raw.stx_mode,
      .owner = raw.stx_uid,
      .links = raw.stx_nlink,
      .blocks = raw.stx_blocks,
  };
#ifdef STATX_MNT_ID
  if (raw.stx_mask & STATX_MNT_ID) result->mount = raw.stx_mnt_id;
#endif
  return 0;
}

int tarn_stat_at(int directory, const char *name, int cached, struct tarn_stat *result) {
  int sync = cached ? AT_STATX_DONT_SYNC : AT_STATX_SYNC_AS_STAT;
  return get_stat(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | sync, result);
}

int tarn_stat_descriptor(int descriptor, struct tarn_stat *result) {
  return get_stat(descriptor, "", AT_EMPTY_PATH, result);
}

int tarn_stat_path(const char *path, struct tarn_stat *result) {
  return get_stat(AT_FDCWD, path, 0, result);
}

int64_t tarn_read_directory(int descriptor, void *buffer, size_t size) {
  long bytes = RETRY(syscall(SYS_getdents64, descriptor, buffer, size));
  return bytes == -1 ? -errno : bytes;
}

const char *tarn_directory_name(const void *buffer, size_t offset, size_t *next) {
  const struct record *record = (const void *)((const char *)buffer + offset);
  *next = offset + record->length;
  return record->name;
}

int tarn_rename(int from_directory, const char *from, int to_directory, const char *to, int mode) {
  unsigned flags = 0;
  if (mode == TARN_RENAME_NOREPLACE) flags = RENAME_NOREPLACE;
  if (mode == TARN_RENAME_EXCHANGE) flags = RENAME_EXCHANGE;
  return RESULT(renameat2(from_directory, from, to_directory, to, flags));
}

int tarn_link(int from_directory, const char *from, int to_directory, const char *to) {
  return RESULT(linkat(from_directory, from, to_directory, to, 0));
}

int64_t tarn_file_system_kind(int descriptor) {
  struct statfs status;
  return RETRY(fstatfs(descriptor, &status)) == -1 ? -errno : (int64_t)(uint32_t)status.f_type;
}

int tarn_open_unnamed(int directory, unsigned mode) {
  int file = RETRY(openat(directory, ".", O_TMPFILE | O_RDWR | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode));
  return file == -1 ? -errno : file;
}

int tarn_link_unnamed(int file, int directory, const char *name) {
  int result = RESULT(linkat(file, "", directory, name, AT_EMPTY_PATH));
  if (result != -ENOENT) return result;
  // Before Linux 6.10 only who has CAP_DAC_READ_SEARCH may do that.
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return RESULT(linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW));
}

void tarn_tell_written(int directory, const char *name) {
  int file = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file >= 0) close(file);
}

int tarn_make_directory(int directory, const char *name, unsigned mode) {
  return RESULT(mkdirat(directory, name, (mode_t)mode));
}

int tarn_unlink(int directory, const char *name) { return RESULT(unlinkat(directory, name, 0)); }

int tarn_remove_directory(int directory, const char *name) {
  return RESULT(unlinkat(directory, name, AT_REMOVEDIR));
}

int64_t tarn_read_at(int descriptor, void *buffer, size_t size, uint64_t offset) {
  ssize_t bytes = RETRY(pread(descriptor, buffer, size, (off_t)offset));
  return bytes == -1 ? -errno : bytes;
}

int64_t tarn_write_at(int descriptor, const void *buffer, size_t size, uint64_t offset) {
  ssize_t bytes = RETRY(pwrite(descriptor, buffer, size, (off_t)offset));
  return bytes == -1 ? -errno : bytes;
}

int tarn_truncate(int descriptor, uint64_t size) { return RESULT(ftruncate(descriptor, (off_t)size)); }

int tarn_reserve(int descriptor, uint64_t size) {
  return RESULT(fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)size));
}

int tarn_clone(int descriptor, int source) { return RESULT(ioctl(descriptor, FICLONE, source)); }

int tarn_advise_sequential(int descriptor) {
  return -posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
}

int tarn_sync(int descriptor) { return RESULT(fsync(descriptor)); }
int tarn_sync_data(int descriptor) { return RESULT(fdatasync(descriptor)); }
int tarn_sync_file_system(int descriptor) { return RESULT(syncfs(descriptor)); }

int tarn_start_writeback(int descriptor, uint64_t offset, uint64_t size) {
  return RESULT(sync_file_range(descriptor, (off_t)offset, (off_t)size, SYNC_FILE_RANGE_WRITE));
}

int tarn_check_writeback(int descriptor) {
  return RESULT(sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE));
}

int tarn_set_mode(int descriptor, unsigned mode) { return RESULT(fchmod(descriptor, (mode_t)mode)); }

const int tarn_path_only = O_PATH;

int tarn_set_mode_of_path(int descriptor, unsigned mode) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return RESULT(chmod(path, (mode_t)mode));
}

int tarn_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds) {
  struct timespec times[2] = {
      {.tv_nsec = UTIME_OMIT},
      {.tv_sec = seconds, .tv_nsec = nanoseconds},
  };
  return RESULT(futimens(descriptor, times));
}

int tarn_lock(int descriptor) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int result = RESULT(fcntl(descriptor, F_OFD_SETLK, &whole));
  return result == -EACCES ? -EAGAIN : result;
}

int tarn_unlock(int descriptor) {
  struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  return RESULT(fcntl(descriptor, F_OFD_SETLK, &whole));
}

int tarn_is_locked(int descriptor) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (RETRY(fcntl(descriptor, F_OFD_GETLK, &whole)) == -1) return -errno;
  return whole.l_type != F_UNLCK;
}

int tarn_space(int descriptor, struct tarn_space_left *space) {
  struct statvfs values;
  if (RETRY(fstatvfs(descriptor, &values)) == -1) return -errno;
  space->free_bytes = (uint64_t)values.f_bavail * values.f_frsize;
  space->total_bytes = (uint64_t)values.f_blocks * values.f_frsize;
  space->free_files = values.f_favail;
  space->total_files = values.f_files;
  return 0;
}

int tarn_sealed_memory(const void *bytes, size_t size) {
  int descriptor = memfd_create("tarn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor == -1) return -errno;
  int64_t written = tarn_write_at(descriptor, bytes, size, 0);
  if (written == (int64_t)size &&
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != -1)
    return descriptor;
  int error = written < 0 ? (int)written : written < (int64_t)size ? -ENOSPC : -errno;
  close(descriptor);
  return error;
}

int tarn_open_process(int process) {
  int descriptor = (int)syscall(SYS_pidfd_open, process, 0);
  return descriptor == -1 ? -errno : descriptor;
}

int tarn_send_descriptor(const char *path, int descriptor) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof(name.sun_path)) return -ENAMETOOLONG;
  strcpy(name.sun_path, path);
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {
      .msg_name = &name,
      .msg_namelen = sizeof(name),
      .msg_control = control.bytes,
      .msg_controllen = sizeof(control.bytes),
  };
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (sender == -1) return -errno;
  int result = RESULT(sendmsg(sender, &message, MSG_NOSIGNAL));
  close(sender);
  return result;
}

char *tarn_real_path(const char *path, int *error) {
  char *resolved = realpath(path, NULL);
  *error = resolved == NULL ? -errno : 0;
  return resolved;
}

int tarn_raise_open_files(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == -1) return -errno;
  if (limit.rlim_cur >= limit.rlim_max) return 0;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == -1 ? -errno : 0;
}

void tarn_error_text(int error, char *buffer, size_t size) {
  const char *text = strerror_r(error, buffer, size);
  if (text != buffer) snprintf(buffer, size, "%s", text);
}
