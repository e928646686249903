// SPDX-License-Identifier: GPL-2.0-only
// What is mounted below a folder. It hides what lies there, and inotify tells nothing of it.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch.h"

// Of each mount its number and its place, one behind the other, each with its NUL.
static char *table;
static size_t table_size;

// proc_pid_mountinfo(5): blank, tab, newline and backslash are written as three octal digits.
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from; to++) {
    if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
      *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = 0;
}

static void add(const char *text) {
  size_t size = strlen(text) + 1;
  table = realloc(table, table_size + size);
  if (!table) abort();
  memcpy(table + table_size, text, size);
  table_size += size;
}

// Reads the kernel's table of mounts, for `mounts_below`. Where there is none, nothing is mounted below any folder.
void mounts_read(void) {
  table_size = 0;
  FILE *file = fopen("/proc/self/mountinfo", "re");
  if (!file) return;
  char *line = NULL, *id, *point;
  size_t room = 0;
  while (getline(&line, &room, file) != -1) {
    id = point = NULL;
    if (sscanf(line, "%ms %*s %*s %*s %ms", &id, &point) == 2) {
      unescape(point);
      add(id);
      add(point);
    }
    free(id);
    free(point);
  }
  free(line);
  fclose(file);
}

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
static uint64_t hash(uint64_t sum, const char *text) {
  do {
    sum = (sum ^ (unsigned char)*text) * 0x100000001b3;
  } while (*text++);
  return sum;
}

// A number that is another one once something else is mounted below `path`, as of the last `mounts_read`; 0 where that cannot be told.
uint64_t mounts_below(const char *path) {
  char *top = realpath(path, NULL);
  if (!top) return 0;
  size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t at = 0; at < table_size;) {
    const char *id = table + at, *point = id + strlen(id) + 1;
    at = (size_t)(point - table) + strlen(point) + 1;
    if (strncmp(point, top, length) == 0 && point[length] == '/' && point[length + 1]) sum = hash(hash(sum, id), point);
  }
  free(top);
  return sum;
}
