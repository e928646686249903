// The system calls that Glibc's Swift module lacks or hides behind variadic functions.
//
// Every function that can fail returns a negative errno instead of setting it, and is called again after
// EINTR where that is safe. Descriptors are always opened with O_CLOEXEC.
#ifndef TARN_LINUX_SHIM_H
#define TARN_LINUX_SHIM_H

#include <stddef.h>
#include <stdint.h>

/// What statx says of an object, as far as Tarn asks.
struct tarn_stat {
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  uint64_t mount;  ///< 0 when the kernel does not say (before 5.8).
  int64_t modified_seconds;
  int64_t changed_seconds;
  uint32_t modified_nanoseconds;
  uint32_t changed_nanoseconds;
  uint32_t mode;
  uint32_t owner;
  uint32_t links;
  // Of 512 bytes each, reserved ones included.
  uint64_t blocks;
};

/// How tarn_rename treats what stands at the destination.
enum tarn_rename_mode {
  TARN_RENAME_REPLACE = 0,
  TARN_RENAME_NOREPLACE = 1,
  TARN_RENAME_EXCHANGE = 2,
};

/// openat2 that stays beneath `directory`, follows no link and crosses no mount. EAGAIN (a rename raced
/// with the walk) is tried again 64 times. Returns a descriptor.
int tarn_open_beneath(int directory, const char *path, int flags, unsigned mode);
/// openat. Returns a descriptor.
int tarn_open_at(int directory, const char *name, int flags, unsigned mode);
int tarn_close(int descriptor);

/// Never follows a link. `cached` allows attributes that a network file system has at hand.
int tarn_stat_at(int directory, const char *name, int cached, struct tarn_stat *result);
int tarn_stat_descriptor(int descriptor, struct tarn_stat *result);
/// Follows links.
int tarn_stat_path(const char *path, struct tarn_stat *result);

/// Fills `buffer` with records of struct linux_dirent64. Returns bytes, 0 at the end.
int64_t tarn_read_directory(int descriptor, void *buffer, size_t size);
/// The record at `offset` of a buffer that tarn_read_directory filled: its name, and in `next` the offset
/// of the record after it.
const char *tarn_directory_name(const void *buffer, size_t offset, size_t *next);

int tarn_rename(int from_directory, const char *from, int to_directory, const char *to, int mode);
int tarn_link(int from_directory, const char *from, int to_directory, const char *to);
/// What kind of file system a descriptor is on: the magic numbers of statfs(2), or a negative errno.
int64_t tarn_file_system_kind(int descriptor);
/// A file without a name on the file system of a directory; it is gone when it is closed without having got one. -EOPNOTSUPP and the
/// like where the file system knows none.
int tarn_open_unnamed(int directory, unsigned mode);
/// Gives such a file a name, once: -EEXIST when something has it.
int tarn_link_unnamed(int file, int directory, const char *name);
/// Opens a file for writing and closes it, so that who watches the directory hears that it is written (IN_CLOSE_WRITE): of a link
/// the kernel tells only IN_CREATE. What cannot be opened is left.
void tarn_tell_written(int directory, const char *name);
int tarn_make_directory(int directory, const char *name, unsigned mode);
int tarn_unlink(int directory, const char *name);
int tarn_remove_directory(int directory, const char *name);

/// One read or write, short ones included. Returns bytes.
int64_t tarn_read_at(int descriptor, void *buffer, size_t size, uint64_t offset);
int64_t tarn_write_at(int descriptor, const void *buffer, size_t size, uint64_t offset);
int tarn_truncate(int descriptor, uint64_t size);
/// Allocates blocks without changing the length.
int tarn_reserve(int descriptor, uint64_t size);
/// Shares the blocks of `source` (FICLONE).
int tarn_clone(int descriptor, int source);
int tarn_advise_sequential(int descriptor);

int tarn_sync(int descriptor);
int tarn_sync_data(int descriptor);
int tarn_sync_file_system(int descriptor);
/// Starts writing dirty pages of the range out and does not wait.
int tarn_start_writeback(int descriptor, uint64_t offset, uint64_t size);
/// Reports an error of writing this file back that happened since it was opened; no device flush.
int tarn_check_writeback(int descriptor);

int tarn_set_mode(int descriptor, unsigned mode);
/// O_PATH, which Swift's Glibc does not show.
extern const int tarn_path_only;
/// The same for a descriptor of O_PATH, through /proc.
int tarn_set_mode_of_path(int descriptor, unsigned mode);
/// Sets the modification time; the access time stays.
int tarn_set_modified(int descriptor, int64_t seconds, int64_t nanoseconds);

/// Takes an exclusive lock of the whole file without waiting (F_OFD_SETLK): -EAGAIN when another holds it. It
/// belongs to the open file, so it ends with its last descriptor.
int tarn_lock(int descriptor);
/// Ends it at once, also where a child between fork and exec has a copy of the descriptor.
int tarn_unlock(int descriptor);
/// 1 when another open file holds such a lock, 0 when none does; takes none.
int tarn_is_locked(int descriptor);

/// Bytes free for unprivileged writers and bytes in all.
struct tarn_space_left {
  uint64_t free_bytes;
  uint64_t total_bytes;
  uint64_t free_files;
  uint64_t total_files;
};
int tarn_space(int descriptor, struct tarn_space_left *space);

/// A file in memory with these bytes, which nobody can change any more; it is read from its beginning. Returns a descriptor.
int tarn_sealed_memory(const void *bytes, size_t size);
/// A descriptor that can be read once the child has ended.
int tarn_open_process(int process);
/// Sends a datagram that carries a descriptor and no byte to a Unix socket with a path.
int tarn_send_descriptor(const char *path, int descriptor);

/// The real path, to be freed by the caller; NULL with a negative errno in `error`.
char *tarn_real_path(const char *path, int *error);
/// Raises the soft limit of open files to the hard one.
int tarn_raise_open_files(void);
/// Writes the text of an errno value into `buffer`.
void tarn_error_text(int error, char *buffer, size_t size);

#endif
