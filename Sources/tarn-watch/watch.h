// SPDX-License-Identifier: GPL-2.0-only
// What the parts of tarn-watch know of one another. One thread, so everything lies in static variables.
#ifndef TARN_WATCH_H
#define TARN_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/types.h>

enum {
  MAX_FOLDERS = 1024,
  MAX_TOLD = 4095,  // bytes of a path that is told: PATH_MAX less its NUL
  TEXT_SIZE = 192,  // bytes of a reason, with its NUL
  NO_WATCH = -1,
};

enum state { WALKING, READY, BLIND };

struct folder {
  struct folder *next;
  uint64_t id;
  char *path;
  struct node *root;  // NULL while the folder is blind
  enum state state;
  bool is_kept_out;   // it could not be opened once; something below it is owed
  bool is_seen;       // device and inode are those of the root's watch
  dev_t device;
  ino_t inode;
  mode_t mode;         // of the root, as far as was told
  uid_t owner;
  gid_t group;
  uint64_t mounts;     // what is mounted below it: see mounts.c
  size_t directories;  // as of the last `ready`
  uint64_t told_at;    // where its last record ends in all that was ever told
  uint64_t whole_at;   // where its last `tree` of the whole folder ends
  char code[24];       // why it does not see, empty when it does
  char text[TEXT_SIZE];
};

enum {
  QUEUED = 1,      // lies in the queue of directories to visit
  RELIST = 2,      // is to be listed although it was
  DEEP = 4,        // and so is everything below
  PARTIAL = 8,     // something below it is owed
  STALLED = 16,    // something below it was to be visited, but it was not where it was thought to be
  EXPIRING = 32,   // of a detached one: its watches are being removed
  OWED = 64,       // is to be visited when a mode changes: its own, or that of a directory above it that lets nobody in
};

enum { BY_WD, BY_INODE, BY_NAME, TABLES };

// A directory. Its parent is NULL when it is a folder's root (then it has a folder) or detached.
struct node {
  struct node *parent, *child, *next, *previous;
  struct node *chained[TABLES];
  struct folder *folder;
  int64_t detached_at;  // milliseconds
  ino_t inode;          // of the directory that is watched; all of a folder are on one device
  char *name;
  uint32_t seen;  // the listing that found it
  uint32_t slot;  // in the queue
  int wd;
  uint8_t flags;
};

// Each part calls what is above it, and nothing below.

// clock.c: of a clock that never goes back.
int64_t milliseconds(void);

// library.c: libinotifytools and its traps.
int library_open(void);
bool library_is_open(void);
int library_descriptor(void);
int library_watch(int directory, bool is_known, int *wd);
void library_remove(int wd);
struct inotify_event *library_next(void);
void library_rest(void);

// mounts.c: what is mounted.
void mounts_read(void);
uint64_t mounts_below(const char *path);

// queue.c: directories to visit.
void queue_add(struct node *node, uint8_t flags);
void queue_add_root(struct node *root, uint8_t flags);
void queue_remove(struct node *node);
struct node *queue_newest(void);
bool queue_is_empty(void);

// chain.c: opening directories.
int chain_open(struct folder *folder, struct node *node, struct node **closed, int open_root(struct folder *));
void chain_close(void);
void chain_forget(void);

// tree.c: which watch belongs to which directory.
struct node *node_new(struct node *parent, const char *name);
void node_free(struct node *node);
void node_detach(struct node *node);
struct node *node_find(const struct node *parent, const char *name);
struct node *node_by_wd(int wd);
bool node_has_inode(ino_t inode);
void node_set_watch(struct node *node, int wd, ino_t inode);
struct node *node_top(struct node *node);
bool node_is_above(const struct node *node, const struct node *other);
void node_take_place(struct node *node, struct node *placeholder);
struct node *node_after(const struct node *top, struct node *node);
struct node *node_beside(const struct node *top, struct node *node);
size_t node_count(struct node *top);
bool node_path(const struct node *node, const char *name, char *path, size_t *length);
void visit_owed(struct node *top);

// output.c: records that wait for the reader.
void tell_path(const char *kind, struct node *node, const char *name);
void tell_whole(struct folder *folder);
void tell_state(struct folder *folder);
void tell_alive(void);
bool output_is_empty(void);
bool output_is_half_full(void);
bool output_flush(void);

// limbo.c: directories that left their place.
void limbo_add(struct node *node);
void limbo_remove(struct node *node);
void limbo_expire(struct node *node);
bool limbo_step(int64_t now);
int64_t limbo_due(void);
void limbo_clear(void);

// folder.c: the folders that were asked for.
extern struct folder *folders;
void folder_watch(uint64_t id, const char *path);
void folder_forget(uint64_t id);
int folder_open_root(struct folder *folder);
void folder_blind(struct folder *folder, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void folder_rewalk(struct folder *folder);
void folders_overflow(void);
void folders_lost(void);
void folder_check(struct folder *folder);
bool folder_has_other_mode(struct folder *folder);
void folders_check(void);
void folders_remounted(void);
void folders_finish_walk(void);

// walk.c: watching and listing directories.
void walk_step(void);

// events.c: what the kernel tells.
void events_take(void);

#endif
