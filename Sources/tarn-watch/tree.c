// SPDX-License-Identifier: GPL-2.0-only
// Directories as nodes, found by the number of their watch, by inode, and by parent and name. A path is made by walking
// up, so renaming a directory with everything below it is one step.

#include <stdlib.h>
#include <string.h>

#include "watch.h"

static struct table {
  struct node **heads;
  size_t size, count;
} tables[TABLES];

static void *must(void *memory) {
  // Nothing can be told any more; the reader sees that the program died.
  if (!memory) abort();
  return memory;
}

static uint64_t mix(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9U;
  return word ^ (word >> 27);
}

static uint64_t hash_name(const struct node *parent, const char *name) {
  uint64_t hash = 0xCBF29CE484222325U ^ (uintptr_t)parent;
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001B3U;
  return hash;
}

static struct node **head(int kind, uint64_t hash) { return &tables[kind].heads[mix(hash) & (tables[kind].size - 1)]; }

static struct node **head_of(int kind, const struct node *node) {
  if (kind == BY_WD) return head(kind, (uint64_t)node->wd);
  if (kind == BY_INODE) return head(kind, node->inode);
  return head(kind, hash_name(node->parent, node->name));
}

static void push(int kind, struct node *node) {
  struct node **first = head_of(kind, node);
  node->chained[kind] = *first;
  *first = node;
}

// Chains stay short.
static void insert(int kind, struct node *node) {
  struct table *table = &tables[kind];
  if (++table->count > table->size) {
    struct table old = *table;
    table->size = old.size ? old.size * 2 : 64;
    table->heads = must(calloc(table->size, sizeof *table->heads));
    for (size_t index = 0; index < old.size; index++) {
      for (struct node *moved = old.heads[index], *next; moved; moved = next) {
        next = moved->chained[kind];
        push(kind, moved);
      }
    }
    free(old.heads);
  }
  push(kind, node);
}

static void erase(int kind, struct node *node) {
  struct node **link = head_of(kind, node);
  while (*link != node) link = &(*link)->chained[kind];
  *link = node->chained[kind];
  tables[kind].count--;
}

static void attach(struct node *node, struct node *parent) {
  node->parent = parent;
  node->previous = NULL;
  node->next = parent->child;
  if (parent->child) parent->child->previous = node;
  parent->child = node;
  insert(BY_NAME, node);
}

// Takes a node with a parent out of its place; what lies below it stays with it.
static void detach(struct node *node) {
  erase(BY_NAME, node);
  if (node->previous) node->previous->next = node->next;
  else node->parent->child = node->next;
  if (node->next) node->next->previous = node->previous;
  node->parent = node->next = node->previous = NULL;
}

// A directory that has no watch yet; without a parent a root.
struct node *node_new(struct node *parent, const char *name) {
  struct node *node = must(calloc(1, sizeof *node));
  node->wd = NO_WATCH;
  node->name = must(strdup(name));
  if (parent) attach(node, parent);
  return node;
}

// One without children; its watch is not removed.
void node_free(struct node *node) {
  chain_forget();
  queue_remove(node);
  node_set_watch(node, NO_WATCH, 0);
  if (node->parent) detach(node);
  free(node->name);
  free(node);
}

void node_detach(struct node *node) {
  if (node->parent) detach(node);
}

struct node *node_find(const struct node *parent, const char *name) {
  if (!tables[BY_NAME].size) return NULL;
  struct node *node = *head(BY_NAME, hash_name(parent, name));
  while (node && (node->parent != parent || strcmp(node->name, name) != 0)) node = node->chained[BY_NAME];
  return node;
}

struct node *node_by_wd(int wd) {
  if (!tables[BY_WD].size) return NULL;
  struct node *node = *head(BY_WD, (uint64_t)wd);
  while (node && node->wd != wd) node = node->chained[BY_WD];
  return node;
}

// Whether some directory with this inode is watched, on whatever device.
bool node_has_inode(ino_t inode) {
  if (!tables[BY_INODE].size) return false;
  struct node *node = *head(BY_INODE, inode);
  while (node && node->inode != inode) node = node->chained[BY_INODE];
  return node != NULL;
}

// With NO_WATCH its watch is gone.
void node_set_watch(struct node *node, int wd, ino_t inode) {
  if (node->wd != NO_WATCH) {
    erase(BY_WD, node);
    erase(BY_INODE, node);
  }
  node->wd = wd;
  node->inode = inode;
  if (wd == NO_WATCH) return;
  insert(BY_WD, node);
  insert(BY_INODE, node);
}

struct node *node_top(struct node *node) {
  while (node->parent) node = node->parent;
  return node;
}

// True for a node and itself, too.
bool node_is_above(const struct node *node, const struct node *other) {
  while (other && other != node) other = other->parent;
  return other != NULL;
}

// Puts a detached node where the placeholder is, which has no children and is freed.
void node_take_place(struct node *node, struct node *placeholder) {
  struct node *parent = placeholder->parent;
  free(node->name);
  node->name = must(strdup(placeholder->name));
  node_free(placeholder);
  attach(node, parent);
}

// The node after this one below `top`, parents first; NULL at the end.
struct node *node_after(const struct node *top, struct node *node) {
  return node->child ? node->child : node_beside(top, node);
}

// The node after this one below `top` that does not lie below this one; NULL at the end.
struct node *node_beside(const struct node *top, struct node *node) {
  while (node != top && !node->next) node = node->parent;
  return node == top ? NULL : node->next;
}

// How many directories are watched, `top` included.
size_t node_count(struct node *top) {
  size_t count = 0;
  for (struct node *node = top; node; node = node_after(top, node)) count += node->wd != NO_WATCH;
  return count;
}

// Writes the path of a node, or of the name in it, without the root's own name; `length` comes as the room. Returns
// false when there is not enough.
bool node_path(const struct node *node, const char *name, char *path, size_t *length) {
  size_t room = *length, start = room;
  const char *part = name;
  for (;;) {
    if (part) {
      size_t size = strlen(part), slash = start < room;
      if (start < size + slash) return false;
      if (slash) path[--start] = '/';
      start -= size;
      memcpy(path + start, part, size);
    }
    if (!node->parent) break;
    part = node->name;
    node = node->parent;
  }
  *length = room - start;
  memmove(path, path + start, *length);
  return true;
}

// What is owed at or below a directory whose mode changed, or that was found to be open.
void visit_owed(struct node *top) {
  for (struct node *node = top; node;) {
    if (node->flags & OWED) queue_add(node, 0);
    bool is_below = node->flags & PARTIAL;
    node->flags &= (uint8_t)~(OWED | PARTIAL);
    node = is_below ? node_after(top, node) : node_beside(top, node);
  }
}
