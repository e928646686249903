// SPDX-License-Identifier: GPL-2.0-only
// What the kernel tells: records for the reader, and changes of the tree of directories.

#include <string.h>

#include "watch.h"

// The kernel dropped a watch: the directory is gone, or its file system.
static void ignored(struct node *node) {
  node_set_watch(node, NO_WATCH, 0);
  struct folder *folder = node->folder;
  if (folder) {
    folder_check(folder);
    if (folder->root) folder_blind(folder, "gone", "%s was removed", folder->path);
  } else if (node->parent) {
    while (node->child) limbo_add(node->child);
    // One that is to be visited stays: another directory may have its name, which was told before.
    if (!(node->flags & (QUEUED | OWED))) node_free(node);
  }
}

// Something happened to a watched directory itself.
static void nameless(struct node *node, uint32_t mask) {
  struct folder *folder = node->folder;
  if (mask & IN_UNMOUNT) {
    struct folder *holder = node_top(node)->folder;
    if (holder) folder_blind(holder, "unmounted", "the file system of %s was unmounted", holder->path);
  } else if (mask & IN_IGNORED) {
    ignored(node);
  } else if (folder) {
    if (mask & (IN_DELETE_SELF | IN_MOVE_SELF)) folder_check(folder);
    if (mask & IN_ATTRIB) visit_owed(node);
    // What its mode kept out may come in now.
    if (mask & IN_ATTRIB && folder_has_other_mode(folder)) tell_path("tree", node, NULL);
  }
}

// A directory with a name in a watched one.
static void directory(struct node *node, const struct inotify_event *event) {
  struct node *child = node_find(node, event->name);
  if (event->mask & (IN_MOVED_FROM | IN_DELETE)) {
    tell_path(event->mask & IN_DELETE ? "dirty" : "tree", node, event->name);
    if (child) limbo_add(child);
    // Where two directories change places the event of who came comes before the one of who left.
    if (event->mask & IN_MOVED_FROM) queue_add(node_new(node, event->name), 0);
    return;
  }
  if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
    // Told when it is watched: whoever looks at it before would miss what is made in it after.
    queue_add(child ? child : node_new(node, event->name), 0);
    return;
  }
  tell_path("dirty", node, event->name);
  // Its mode may let us in now.
  if (!child) child = node_new(node, event->name);
  if (child->wd == NO_WATCH) queue_add(child, RELIST);
  visit_owed(child);
}

static void take(const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) {
    folders_overflow();
    return;
  }
  struct node *node = node_by_wd(event->wd);
  if (!node) return;
  if (event->len == 0 || event->mask & (IN_UNMOUNT | IN_IGNORED)) {
    nameless(node, event->mask);
  } else if (strcmp(event->name, ".tarn") != 0) {
    if (event->mask & IN_ISDIR) directory(node, event);
    else tell_path("dirty", node, event->name);
  }
}

// Takes all events that there are.
void events_take(void) {
  struct inotify_event *event;
  while ((event = library_next())) take(event);
}
