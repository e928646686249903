// SPDX-License-Identifier: GPL-2.0-only
// Directories that left their place: renamed, moved out, or of a folder that is not watched any more.
//
// The kernel tells of a rename in two events that need not follow one another. So who left waits here for a moment with
// everything below it, watches included: when its watch is found at another place it goes there whole. What nobody
// claims loses its watches, a few at a time, for each removal brings an event (IN_IGNORED), and a hundred thousand at
// once would overflow the queue.

#include "watch.h"

enum { PATIENCE = 200, BATCH = 8 };  // milliseconds; watches

static struct node *first, *last;

// Those that expire come first, then the oldest. The links of siblings are free in a node without parent.
static void append(struct node *node) {
  node->next = NULL;
  node->previous = last;
  if (last) last->next = node;
  else first = node;
  last = node;
}

// Takes a node out of its place, or a root from its folder.
void limbo_add(struct node *node) {
  chain_forget();
  node_detach(node);
  node->folder = NULL;
  node->flags &= (uint8_t)~EXPIRING;
  node->detached_at = milliseconds();
  append(node);
}

// Somebody claims a detached node.
void limbo_remove(struct node *node) {
  if (node->previous) node->previous->next = node->next;
  else first = node->next;
  if (node->next) node->next->previous = node->previous;
  else last = node->previous;
  node->next = node->previous = NULL;
  node->flags &= (uint8_t)~EXPIRING;
}

// Its watches go as soon as may be.
void limbo_expire(struct node *node) {
  limbo_remove(node);
  node->flags |= EXPIRING;
  node->previous = NULL;
  node->next = first;
  if (first) first->previous = node;
  else last = node;
  first = node;
}

// Removes some watches of the first whose time is over. Returns true when there may be more to remove.
bool limbo_step(int64_t now) {
  struct node *top = first;
  if (!top) return false;
  // As long as directories wait to be visited one of them may be this one.
  bool is_over = top->flags & EXPIRING || (queue_is_empty() && now - top->detached_at >= PATIENCE);
  if (!is_over) return false;
  top->flags |= EXPIRING;
  for (int removed = 0; top && removed < BATCH;) {
    struct node *leaf = top;
    while (leaf->child) leaf = leaf->child;
    if (leaf->wd != NO_WATCH) {
      library_remove(leaf->wd);
      removed++;
    }
    if (leaf == top) {
      limbo_remove(top);
      top = NULL;
    }
    node_free(leaf);
  }
  return true;
}

// The instance is gone, and all watches with it.
void limbo_clear(void) {
  while (first) {
    limbo_expire(first);
    limbo_step(0);
  }
}

// When the next one expires: a time of `milliseconds`, or -1.
int64_t limbo_due(void) {
  if (!first) return -1;
  return first->flags & EXPIRING ? 0 : first->detached_at + PATIENCE;
}
