// SPDX-License-Identifier: GPL-2.0-only
// libinotifytools and its traps, all in one place.
//
// - It hides its descriptor. inotify_init gives the lowest one that is free, which is known before; /proc is asked
//   whether it is the one. A second descriptor of the same instance (`real`) is ours, to poll, and because:
// - It reads up to 64 KiB at once, hands the events out one by one, and waits (for whole seconds, or for ever) when
//   it has none left, without a way to ask how many are left. So while it may have some, its own number is an eventfd:
//   select finds that ready, FIONREAD is refused, and the library answers NULL at once. Its number is the inotify
//   instance only while watches are added and while poll says that there is something to read.
// - Its books (watches by number, watches by name) only grow: the watch of a directory that was deleted cannot be
//   taken out, for the kernel has forgotten it already. Two entries of one name or number spoil them. So each watch gets a
//   name of its own, watches are removed by the system call, and the books are thrown away every few thousand
//   watches: they are needed only to learn the number of the watch just added. Clean-up closes the library's number,
//   not the instance, which lives on in `real`.
// - select takes descriptors below 1024 only: ours is among the first.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inotifytools/inotifytools.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "watch.h"

enum { MAX_BOOKS = 4096 };

static const uint32_t mask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE |
                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

static int number = -1;  // the library's descriptor
static int real = -1;    // the inotify instance
static int ready = -1;   // an eventfd that is always ready
static bool is_attached, may_hold_events;
static unsigned books, serial;

// The library's number means the inotify instance, or the eventfd.
static void attach(bool on) {
  if (is_attached == on) return;
  dup3(on ? real : ready, number, O_CLOEXEC);
  is_attached = on;
}

static bool is_inotify(int descriptor) {
  char link[32], target[32] = {0};
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  return readlink(link, target, sizeof target - 1) > 0 && strcmp(target, "anon_inode:inotify") == 0;
}

// Returns 0, or the error's number.
static int start(void) {
  int expected = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (expected == -1) return errno;
  close(expected);
  if (!inotifytools_initialize()) return inotifytools_error();
  if (!is_inotify(expected)) {
    inotifytools_cleanup();
    return EBADF;
  }
  number = expected;
  books = 0;
  is_attached = true;
  return 0;
}

int library_open(void) {
  if (real != -1) return 0;
  if (ready == -1) ready = eventfd(1, EFD_CLOEXEC);
  if (ready == -1) return errno;
  int error = start();
  if (error) return error;
  real = fcntl(number, F_DUPFD_CLOEXEC, 0);
  if (real == -1) {
    error = errno;
    inotifytools_cleanup();
    return error;
  }
  fcntl(number, F_SETFD, FD_CLOEXEC);
  return 0;
}

bool library_is_open(void) { return real != -1; }

int library_descriptor(void) { return real; }

// Throws the books away. For a moment there is a second instance; where there may be none, the books stay.
static int renew(void) {
  int probe = inotify_init1(IN_CLOEXEC);
  if (probe == -1) return 0;
  close(probe);
  inotifytools_cleanup();
  int error = start();
  if (error) {
    close(real);
    real = -1;
    return error;
  }
  dup3(real, number, O_CLOEXEC);
  return 0;
}

// Ways to write one directory, all different: after the slash, each bit of `serial` is a slash or "./".
static void write_name(char *name, int directory) {
  char *end = name + sprintf(name, "/proc/self/fd/%d/", directory);
  for (unsigned rest = serial; rest; rest >>= 1) {
    if (rest & 1) *end++ = '.';
    *end++ = '/';
  }
  *end = 0;
}

// Watches the directory of a descriptor, which may be watched already if it `is_known`. Returns 0 and the number of the
// watch, then the old one; or the error's number.
int library_watch(int directory, bool is_known, int *wd) {
  if (books >= MAX_BOOKS || (is_known && books > 0)) {
    int error = renew();
    if (error) return error;
  }
  attach(true);
  char name[128];
  serial++;
  write_name(name, directory);
  if (!inotifytools_watch_file(name, (int)mask)) return inotifytools_error() ? inotifytools_error() : EIO;
  books++;
  *wd = inotifytools_wd_from_filename(name);
  return *wd > 0 ? 0 : EIO;
}

// The kernel may have been quicker.
void library_remove(int wd) {
  if (real != -1) inotify_rm_watch(real, wd);
}

// The next event, valid until the next call; NULL when there is none. Never waits.
struct inotify_event *library_next(void) {
  if (real == -1) return NULL;
  if (may_hold_events) {
    attach(false);
    struct inotify_event *event = inotifytools_next_event(1);
    if (event) return event;
    may_hold_events = false;
  }
  struct pollfd readable = {.fd = real, .events = POLLIN};
  if (poll(&readable, 1, 0) != 1) return NULL;
  attach(true);
  may_hold_events = true;
  return inotifytools_next_event(1);
}

// After a walk: gives back the memory that it took.
void library_rest(void) {
  if (real != -1 && books > 0) renew();
  malloc_trim(0);
}
