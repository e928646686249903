// SPDX-License-Identifier: GPL-2.0-only
// Visits directories: opens each, watches it, and then lists it for the directories in it: what is made between the two
// is told by the watch.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watch.h"

enum { STEP = 64 };

static uint32_t listing;

// --- listing ----------------------------------------------------------------------------------------------------

static bool is_directory(int directory, const struct dirent64 *entry) {
  if (entry->d_type != DT_UNKNOWN) return entry->d_type == DT_DIR;
  struct stat status;
  return fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
         S_ISDIR(status.st_mode);
}

static void found(struct node *node, const char *name, uint8_t flags) {
  struct node *child = node_find(node, name);
  bool is_known = child && child->wd != NO_WATCH;
  if (!child) child = node_new(node, name);
  child->seen = listing;
  if (!is_known || flags & DEEP) queue_add(child, flags & (RELIST | DEEP));
}

// Tells what is in it beside directories, which are told when they are visited. Returns 0, or the negative number of an
// error.
static int list(struct node *node, int directory, uint8_t flags) {
  static char buffer[32 << 10] __attribute__((aligned(16)));
  listing++;
  for (;;) {
    long bytes = syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    // A directory that was removed meanwhile has nothing in it.
    if (bytes == -1 && errno != ENOENT) return -errno;
    if (bytes <= 0) break;
    for (long offset = 0; offset < bytes;) {
      struct dirent64 *entry = (struct dirent64 *)(buffer + offset);
      offset += entry->d_reclen;
      const char *name = entry->d_name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".tarn") == 0) continue;
      if (is_directory(directory, entry)) found(node, name, flags);
      else tell_path("dirty", node, name);
    }
  }
  for (struct node *child = node->child, *next; child; child = next) {
    next = child->next;
    if (child->seen != listing) limbo_add(child);
  }
  return 0;
}

// --- visiting ---------------------------------------------------------------------------------------------------

// It is visited when one of the directories above it is found again.
static void stall(struct node *node) {
  for (; node; node = node->parent) node->flags |= STALLED;
}

// Below a directory that was found again: what was to be visited meanwhile.
static void visit_stalled(struct node *top) {
  for (struct node *node = top; node; node = node_after(top, node)) {
    if (node->flags & STALLED) queue_add(node, 0);
    node->flags &= (uint8_t)~STALLED;
  }
}

// Nobody can see what is in it as long as a mode is what it is, of the directory itself or of one above, up to `closed`. Events
// tell when one changes.
static void owe(struct node *node, const struct node *closed) {
  node->flags |= OWED;
  for (struct node *above = node; above != closed && above->parent;) {
    above = above->parent;
    above->flags |= PARTIAL;
  }
}

// What could not be opened, or not be watched. `closed` is the highest directory whose mode may be the reason.
static void refused(struct folder *folder, struct node *node, int error, const struct node *closed) {
  bool is_root = !node->parent;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
      // Gone, replaced, or something is mounted there. One that is watched is told of by its watch.
      if (is_root) folder_blind(folder, "gone", "%s is no directory any more: %s", folder->path, strerror(error));
      else if (node->wd == NO_WATCH && !node->child) node_free(node);
      return;
    case ESTALE:
      stall(node);
      return;
    case EACCES:
    case EPERM:
      if (is_root) {
        folder_blind(folder, "unreadable", "cannot open %s: %s", folder->path, strerror(error));
        return;
      }
      owe(node, closed);
      tell_path("dirty", node->parent, node->name);
      return;
    case ENOSPC:
      folder_blind(folder, "watch-limit", "the limit of watches is reached (fs.inotify.max_user_watches)");
      return;
    default:
      folder_blind(folder, "error", "cannot watch %s in %s: %s", is_root ? "." : node->name, folder->path,
                   strerror(error));
  }
}

// The watch of a directory is known, by the number `wd`: finds out which node it belongs to.
// Returns the node that it has now, with RELIST when its contents are not known; NULL when there is nothing more to do.
static struct node *settle(struct folder *folder, struct node *node, int wd, ino_t inode) {
  if (node->wd == wd) return node;
  if (node->wd != NO_WATCH) {
    // Another directory has its name now.
    struct node *parent = node->parent, *fresh = node_new(parent, node->name);
    limbo_add(node);
    node = fresh;
  }
  struct node *known = node_by_wd(wd);
  struct node *top = known ? node_top(known) : NULL;
  if (known && (known->folder || (top->folder && !node->parent))) {
    folder_blind(folder, "error", "%s and folder %llu have a directory in common", folder->path,
                 (unsigned long long)top->folder->id);
    return NULL;
  }
  if (!known || !node->parent || top->flags & EXPIRING) {
    // Not watched before, or of a node that is about to go.
    if (known) node_set_watch(known, NO_WATCH, 0);
    node_set_watch(node, wd, inode);
    node->flags |= RELIST;
    return node;
  }
  if (node_is_above(known, node)) {
    // Renamed again and again: what is known here is behind the truth.
    folder_rewalk(folder);
    return NULL;
  }
  // Known from another place: it moved here with everything below it.
  chain_forget();
  if (known->parent) node_detach(known);
  else limbo_remove(known);
  node_take_place(known, node);
  if (known->flags & STALLED) visit_stalled(known);
  return known;
}

// The folder itself could not be opened on the way to a directory below it: that may lie at its own mode, or above it, where
// nobody is told of anything.
static void kept_out(struct folder *folder, struct node *node, int error) {
  folder_check(folder);
  if (!folder->root) return;
  if (error != EACCES && error != EPERM && error != ENOENT && error != ENOTDIR && error != ELOOP) {
    refused(folder, node, error, folder->root);
    return;
  }
  folder->is_kept_out = true;
  owe(node, folder->root);
  tell_path("dirty", node->parent, node->name);
}

static void visit(struct node *node) {
  struct folder *folder = node_top(node)->folder;
  if (!folder) {
    stall(node);
    return;
  }
  struct node *closed = node->parent;
  int directory = chain_open(folder, node, &closed, folder_open_root);
  if (!node_top(node)->folder) return;  // the folder went blind with its root
  if (directory < 0 && !closed && node->parent) {
    kept_out(folder, node, -directory);
    return;
  }
  if (directory < 0) {
    refused(folder, node, -directory, closed);
    return;
  }
  struct stat status;
  int wd = node->wd, error = 0;
  if (fstat(directory, &status) == -1) error = errno;
  // While its watch lives no other directory of the device can have its inode.
  else if (wd == NO_WATCH || node->inode != status.st_ino) {
    error = library_watch(directory, node_has_inode(status.st_ino), &wd);
  }
  if (error) {
    refused(folder, node, error, closed);
    return;
  }
  uint8_t flags = node->flags & DEEP;
  node = settle(folder, node, wd, status.st_ino);
  if (!node) return;
  flags |= node->flags & (RELIST | DEEP);
  node->flags &= (uint8_t)~(RELIST | DEEP | OWED);
  visit_owed(node);
  if (flags & RELIST) {
    error = list(node, directory, flags);
    if (error) {
      refused(folder, node, -error, closed);
      return;
    }
  }
  // What was made in it before the watch: told by the listing, or all of it where it is known from another place.
  tell_path(flags & RELIST ? "dirty" : "tree", node, NULL);
}

// Visits some of the directories that wait.
void walk_step(void) {
  for (int count = 0; count < STEP && !queue_is_empty(); count++) {
    struct node *node = queue_newest();
    // All of the folder before it was visited.
    if (node->folder) folders_finish_walk();
    queue_remove(node);
    visit(node);
  }
  chain_close();
}
