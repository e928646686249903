// SPDX-License-Identifier: GPL-2.0-only
// Records that wait until the reader takes them, at most 1 MiB. Beyond that all that waits is replaced by what each
// folder's state says, and `tree` of the whole folder: nothing is lost but which paths they were.

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "watch.h"

enum { ROOM = 1 << 20, RESERVE = 512 << 10 };

static char buffer[ROOM];
static size_t begin, end, last;  // `last`: where the last record begins
static uint64_t sent;            // bytes that the reader took: where `begin` is in all that was ever told

static bool is_cut;              // the reader has a part of the first record

static uint64_t position(size_t offset) { return sent + (offset - begin); }

bool output_is_empty(void) { return begin == end; }

bool output_is_half_full(void) { return end - begin > ROOM / 2; }

static void move_to_front(void) {
  memmove(buffer, buffer + begin, end - begin);
  end -= begin;
  last = last > begin ? last - begin : 0;
  begin = 0;
}

static void put(struct folder *folder, const char *record, size_t size) {
  memcpy(buffer + end, record, size);
  last = end;
  end += size;
  folder->told_at = position(end);
}

static size_t header(char *record, const char *kind, const struct folder *folder) {
  return (size_t)sprintf(record, "%s %" PRIu64 " ", kind, folder->id);
}

static void put_state(struct folder *folder) {
  char record[64 + sizeof folder->code + sizeof folder->text];
  bool sees = folder->state == READY;
  size_t size = header(record, sees ? "ready" : "blind", folder);
  if (sees) size += (size_t)sprintf(record + size, "%zu", folder->directories);
  else size += (size_t)sprintf(record + size, "%s %s", folder->code, folder->text);
  put(folder, record, size + 1);
}

static void put_whole(struct folder *folder) {
  char record[64];
  size_t size = header(record, "tree", folder);
  put(folder, record, size + 1);
  folder->whole_at = folder->told_at;
}

// Too much waits. What is left of a record that the reader has a part of stays.
static void collapse(void) {
  move_to_front();
  size_t keep = is_cut ? strlen(buffer) + 1 : 0;
  end = keep;
  last = 0;
  uint64_t kept = position(keep);
  for (struct folder *folder = folders; folder; folder = folder->next) {
    if (folder->told_at <= kept) continue;
    if (folder->state != WALKING) put_whole(folder);
    if (folder->state != WALKING || folder->code[0]) put_state(folder);
  }
}

// Makes room for a record, which may use up all but `spare` bytes.
static void make_room(size_t size, size_t spare) {
  if (end + size <= ROOM - spare) return;
  if (begin > 0 && end - begin + size <= (ROOM - spare) / 2) move_to_front();
  else collapse();
}

// --- telling ----------------------------------------------------------------------------------------------------

// Tells of an entry `name` in a directory, or of the directory itself.
void tell_path(const char *kind, struct node *node, const char *name) {
  struct folder *folder = node_top(node)->folder;
  // The folder itself is no part of what is told: all in it is.
  if (!node->parent && !name) kind = "tree";
  // A walk ends with `tree` of the whole folder; what is detached is told when it has a place.
  if (!folder || folder->state != READY || folder->whole_at > sent) return;
  char record[64 + MAX_TOLD];
  size_t size, length;
  for (;;) {
    size = header(record, kind, folder);
    length = MAX_TOLD;
    if (node_path(node, name, record + size, &length)) break;
    // Longer than any path may be that somebody looks at.
    kind = "tree";
    name = NULL;
    node = node->parent;
  }
  size += length;
  record[size++] = 0;
  // Once as long as it waits; what the reader has taken is told again.
  if (last >= begin && end - last == size && end > last && memcmp(buffer + last, record, size) == 0) return;
  make_room(size, RESERVE);
  if (folder->whole_at <= sent) put(folder, record, size);
}

void tell_whole(struct folder *folder) {
  make_room(64, 0);
  put_whole(folder);
}

// Tells the state: `ready` or, while the folder does not see, `blind`.
void tell_state(struct folder *folder) {
  make_room(512, 0);
  put_state(folder);
}

// A sign of life, where nothing else waits to be one.
void tell_alive(void) {
  static const char record[] = "alive 0 ";
  if (begin != end) return;
  memcpy(buffer + end, record, sizeof record);
  last = end;
  end += sizeof record;
}

// Writes what the reader takes without waiting. Returns false when nobody reads.
bool output_flush(void) {
  while (begin < end) {
    ssize_t count = write(STDOUT_FILENO, buffer + begin, end - begin);
    if (count == -1) return errno == EAGAIN || errno == EINTR;
    begin += (size_t)count;
    sent += (uint64_t)count;
    is_cut = buffer[begin - 1] != 0;
  }
  if (begin == end) begin = end = last = 0;
  return true;
}
