// SPDX-License-Identifier: GPL-2.0-only
// The folders that were asked for. A folder is walking, ready or blind; a blind one has no nodes.
//
// No descriptor of a root is kept: it would keep its file system busy, and the kernel would tell of its removal only
// when we let go. Device and inode are enough as long as its watch lives, for the watch keeps the inode's number taken.

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "watch.h"

struct folder *folders;

// File systems that others can change, or a program of the user's, without this kernel telling of it.
static const struct {
  uint32_t type;
  const char *name;
} unsupported[] = {
    {NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"},   {0xFF534D42, "CIFS"},       {0xFE534D42, "SMB"},
    {FUSE_SUPER_MAGIC, "FUSE"}, {V9FS_MAGIC, "9P"},         {AFS_SUPER_MAGIC, "AFS"},   {AFS_FS_MAGIC, "AFS"},
    {0x00C36400, "Ceph"},       {CODA_SUPER_MAGIC, "Coda"}, {0x01161970, "GFS2"},       {0x7461636F, "OCFS2"},
    {0x0BD00BD0, "Lustre"},     {0x19830326, "BeeGFS"},     {0x47504653, "GPFS"},       {NCP_SUPER_MAGIC, "NCP"},
};

static const char *unsupported_name(const char *path) {
  struct statfs status;
  if (statfs(path, &status) == -1) return NULL;
  for (size_t index = 0; index < sizeof unsupported / sizeof *unsupported; index++) {
    if (unsupported[index].type == (uint32_t)status.f_type) return unsupported[index].name;
  }
  return NULL;
}

// Gives back its watches.
static void drop(struct folder *folder) {
  if (!folder->root) return;
  struct node *root = folder->root;
  folder->root = NULL;
  limbo_add(root);
  limbo_expire(root);
}

void folder_blind(struct folder *folder, const char *code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(folder->text, sizeof folder->text, format, arguments);
  va_end(arguments);
  snprintf(folder->code, sizeof folder->code, "%s", code);
  drop(folder);
  folder->state = BLIND;
  tell_state(folder);
}

static void start(struct folder *folder, size_t count) {
  if (count >= MAX_FOLDERS) {
    folder_blind(folder, "error", "there are %zu folders already", count);
    return;
  }
  int error = library_open();
  if (error == EMFILE) {
    folder_blind(folder, "instance-limit",
                 "the limit of inotify instances or descriptors is reached (fs.inotify.max_user_instances)");
    return;
  }
  if (error) {
    folder_blind(folder, "error", "cannot start inotify: %s", strerror(error));
    return;
  }
  const char *name = unsupported_name(folder->path);
  if (name) {
    folder_blind(folder, "unsupported", "%s is on %s, where changes made elsewhere are not told", folder->path, name);
    return;
  }
  folder->mounts = mounts_below(folder->path);
  folder->state = WALKING;
  folder->root = node_new(NULL, "");
  folder->root->folder = folder;
  queue_add_root(folder->root, RELIST);
}

void folder_watch(uint64_t id, const char *path) {
  folder_forget(id);
  size_t count = 0;
  struct folder **link = &folders;
  for (; *link; link = &(*link)->next) count++;
  struct folder *folder = calloc(1, sizeof *folder);
  if (!folder || !(folder->path = strdup(path))) abort();
  folder->id = id;
  *link = folder;
  start(folder, count);
  if (count >= MAX_FOLDERS) folder_forget(id);
}

void folder_forget(uint64_t id) {
  for (struct folder **link = &folders; *link; link = &(*link)->next) {
    struct folder *folder = *link;
    if (folder->id != id) continue;
    drop(folder);
    *link = folder->next;
    free(folder->path);
    free(folder);
    return;
  }
}

// Returns whether they are others than before.
static bool take_mode(struct folder *folder, const struct stat *status) {
  bool is_other =
      folder->mode != status->st_mode || folder->owner != status->st_uid || folder->group != status->st_gid;
  folder->mode = status->st_mode;
  folder->owner = status->st_uid;
  folder->group = status->st_gid;
  return is_other;
}

// Looks whether mode or owners of the root are others than when this was called last, or than when it was opened first: its
// times change as well, and are nobody's concern.
bool folder_has_other_mode(struct folder *folder) {
  struct stat status;
  if (!folder->is_seen || stat(folder->path, &status) == -1) return false;
  return folder->inode == status.st_ino && folder->device == status.st_dev && take_mode(folder, &status);
}

// A descriptor of the root, or the negative number of an error; -ESTALE when the folder went blind, for another
// directory has its name.
int folder_open_root(struct folder *folder) {
  int descriptor = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor == -1) return -errno;
  struct stat status;
  if (fstat(descriptor, &status) == -1) {
    int error = errno;
    close(descriptor);
    return -error;
  }
  if (!folder->is_seen) {
    folder->is_seen = true;
    folder->device = status.st_dev;
    folder->inode = status.st_ino;
    take_mode(folder, &status);
  }
  if (folder->device == status.st_dev && folder->inode == status.st_ino) return descriptor;
  close(descriptor);
  folder_check(folder);
  return -ESTALE;
}

// True when nothing is mounted any more of the file system that the folder lay on.
static bool is_unmounted(const struct folder *folder) {
  FILE *file = fopen("/proc/self/mountinfo", "re");
  if (!file) return false;
  char *line = NULL;
  size_t room = 0;
  bool is_found = false;
  unsigned major_number, minor_number;
  while (!is_found && getline(&line, &room, file) != -1) {
    is_found = sscanf(line, "%*s %*s %u:%u", &major_number, &minor_number) == 2 &&
               makedev(major_number, minor_number) == folder->device;
  }
  free(line);
  fclose(file);
  return !is_found;
}

// Looks whether the folder's path still leads to the directory that is watched.
void folder_check(struct folder *folder) {
  if (!folder->root || !folder->is_seen) return;
  struct stat status;
  bool is_there = stat(folder->path, &status) == 0;
  int error = errno;
  if (is_there && status.st_dev == folder->device && status.st_ino == folder->inode) return;
  bool is_elsewhere = !is_there || status.st_dev != folder->device;
  if (is_elsewhere && is_unmounted(folder)) {
    folder_blind(folder, "unmounted", "the file system of %s was unmounted", folder->path);
  } else if (is_there) {
    folder_blind(folder, "replaced", "%s is another directory now, or something was mounted over it", folder->path);
  } else if (error == EACCES) {
    folder_blind(folder, "unreadable", "cannot look at %s: %s", folder->path, strerror(error));
  } else {
    folder_blind(folder, "gone", "%s is not there any more: %s", folder->path, strerror(error));
  }
}

// Visits what is owed, once the folder can be opened again.
static void look_in(struct folder *folder) {
  if (!folder->root || !folder->is_kept_out) return;
  int descriptor = folder_open_root(folder);
  if (descriptor < 0) return;
  close(descriptor);
  folder->is_kept_out = false;
  visit_owed(folder->root);
}

void folders_check(void) {
  for (struct folder *folder = folders; folder; folder = folder->next) {
    folder_check(folder);
    look_in(folder);
  }
}

// Walks the folder again, with the watches that it has; ends as the first walk does.
void folder_rewalk(struct folder *folder) {
  folder->state = WALKING;
  queue_add_root(folder->root, RELIST | DEEP);
}

// Something was mounted or unmounted: where that was below a folder, other directories and files show there now.
void folders_remounted(void) {
  mounts_read();
  for (struct folder *folder = folders; folder; folder = folder->next) {
    if (!folder->root) continue;
    uint64_t mounts = mounts_below(folder->path);
    if (mounts == folder->mounts) continue;
    folder->mounts = mounts;
    folder_rewalk(folder);
  }
}

// Events were lost, nobody knows of which folder.
void folders_overflow(void) {
  for (struct folder *folder = folders; folder; folder = folder->next) {
    if (!folder->root) continue;
    if (folder->state == READY) {
      snprintf(folder->code, sizeof folder->code, "overflow");
      snprintf(folder->text, sizeof folder->text, "events were lost (fs.inotify.max_queued_events)");
      folder->state = WALKING;
      tell_state(folder);
    }
    folder_rewalk(folder);
  }
}

// The inotify instance is gone.
void folders_lost(void) {
  for (struct folder *folder = folders; folder; folder = folder->next) {
    if (folder->root) {
      folder_blind(folder, "instance-limit",
                   "the inotify instance was lost: the limit of instances is reached (fs.inotify.max_user_instances)");
    }
  }
  limbo_clear();
}

// No directory waits to be visited but roots: the other folders that walked see now.
void folders_finish_walk(void) {
  bool is_any = false;
  for (struct folder *folder = folders; folder; folder = folder->next) {
    if (folder->state != WALKING || folder->root->flags & QUEUED) continue;
    is_any = true;
    folder->state = READY;
    folder->code[0] = 0;
    folder->directories = node_count(folder->root);
    tell_whole(folder);
    tell_state(folder);
  }
  if (is_any) library_rest();
}
