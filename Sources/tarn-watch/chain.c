// SPDX-License-Identifier: GPL-2.0-only
// Opens directories one below the other, never through a link and never across a mount point, as Tarn's own scan does.
// Descriptors are kept for one chain of directories and one turn of the main loop: a tree of any depth takes no more,
// and no file system stays busy.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watch.h"

enum { MAX_CHAIN = 64, MAX_TRIES = 64 };

static struct {
  struct node *node;
  int descriptor;
} chain[MAX_CHAIN];
static int chain_length, deep = -1;

void chain_close(void) {
  while (chain_length > 0) close(chain[--chain_length].descriptor);
  if (deep != -1) close(deep);
  deep = -1;
}

// Nodes changed their place or went: none of the chain is what it was. Its descriptors live until the next opening.
void chain_forget(void) {
  for (int level = 0; level < chain_length; level++) chain[level].node = NULL;
}

static int open_child(int directory, const char *name) {
  struct open_how how = {
      .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
  };
  for (int tries = 0;; tries++) {
    long descriptor = syscall(SYS_openat2, directory, name, &how, sizeof how);
    if (descriptor >= 0) return (int)descriptor;
    // Something was renamed meanwhile.
    if ((errno != EAGAIN && errno != EINTR) || tries >= MAX_TRIES) return -errno;
  }
}

// The nodes from the root to `node`, both included. Valid until the next call.
static struct node **line_to(struct node *node, size_t *length) {
  static struct node **line;
  static size_t room;
  size_t count = 0;
  for (struct node *step = node; step; step = step->parent) {
    if (count == room) {
      room = room ? room * 2 : 64;
      line = reallocarray(line, room, sizeof *line);
      if (!line) abort();
    }
    line[count++] = step;
  }
  for (size_t left = 0, right = count - 1; left < right; left++, right--) {
    struct node *other = line[left];
    line[left] = line[right];
    line[right] = other;
  }
  *length = count;
  return line;
}

// True when the descriptor is the directory that the node stands for.
static bool is_same(int directory, const struct node *node) {
  struct stat status;
  return fstat(directory, &status) == 0 && status.st_ino == node->inode;
}

// A descriptor of the directory that has the node's name, valid until the next call; or the negative number of the
// error: ESTALE when a directory above it is not where it was, which an event under way will tell. With EACCES `closed` is the
// highest of those whose mode may be the reason: a directory is not opened that may not be read, or that lies in one which may
// not be searched. It is NULL where the folder itself was not opened, which `open_root` does.
int chain_open(struct folder *folder, struct node *node, struct node **closed, int open_root(struct folder *)) {
  size_t length;
  struct node **line = line_to(node, &length);
  if (deep != -1) close(deep);
  deep = -1;
  int shared = 0;
  while (shared < chain_length && (size_t)shared < length && chain[shared].node == line[shared]) shared++;
  // The directory itself is opened anew: another one may have its name by now.
  if ((size_t)shared == length) shared--;
  while (chain_length > shared) close(chain[--chain_length].descriptor);
  int current = shared > 0 ? chain[shared - 1].descriptor : -1;
  for (size_t level = (size_t)shared; level < length; level++) {
    bool is_above = level + 1 < length;
    int opened = level == 0 ? open_root(folder) : open_child(current, line[level]->name);
    *closed = level > 0 ? line[level - 1] : NULL;
    if (opened < 0) return is_above && opened != -EACCES && level > 0 ? -ESTALE : opened;
    if (is_above && !is_same(opened, line[level])) {
      close(opened);
      return -ESTALE;
    }
    current = opened;
    if (level < MAX_CHAIN) {
      chain[chain_length].node = line[level];
      chain[chain_length++].descriptor = opened;
    } else {
      if (deep != -1) close(deep);
      deep = opened;
    }
  }
  return current;
}
