// SPDX-License-Identifier: GPL-2.0-only
// Directories to visit, the newest first.

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "watch.h"

static struct node **queue;
static size_t queue_length, queue_room;

void queue_add(struct node *node, uint8_t flags) {
  node->flags |= flags;
  if (node->flags & QUEUED) return;
  if (queue_length == queue_room) {
    queue_room = queue_room ? queue_room * 2 : 256;
    queue = reallocarray(queue, queue_room, sizeof *queue);
    if (!queue) abort();
  }
  node->flags |= QUEUED;
  node->slot = (uint32_t)queue_length;
  queue[queue_length++] = node;
}

// Behind all others: folders are walked one after the other, in the order in which they were asked for.
void queue_add_root(struct node *root, uint8_t flags) {
  bool was_queued = root->flags & QUEUED;
  queue_add(root, flags);
  if (was_queued) return;
  memmove(queue + 1, queue, (queue_length - 1) * sizeof *queue);
  queue[0] = root;
  for (size_t slot = 0; slot < queue_length; slot++) {
    if (queue[slot]) queue[slot]->slot = (uint32_t)slot;
  }
}

void queue_remove(struct node *node) {
  if (!(node->flags & QUEUED)) return;
  node->flags &= (uint8_t)~QUEUED;
  queue[node->slot] = NULL;
  while (queue_length > 0 && !queue[queue_length - 1]) queue_length--;
}

bool queue_is_empty(void) { return queue_length == 0; }

// The one that was added last; NULL when there is none.
struct node *queue_newest(void) { return queue_length > 0 ? queue[queue_length - 1] : NULL; }
