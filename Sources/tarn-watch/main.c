// SPDX-License-Identifier: GPL-2.0-only
/*
NAME
  tarn-watch - tells which files below some folders changed

SYNOPSIS
  tarn-watch [DIRECTORY...]

DESCRIPTION
  Watches folders with everything below them and prints which paths changed. It is a program of its own for its licence's
  sake (libinotifytools is under the GNU General Public License, version 2 only), and holds nothing of Tarn's.

  Each DIRECTORY is watched under the number of its place: 0, 1, and so on. More are asked for on standard input.
  What it prints are hints: something may have changed there. Whoever reads them looks at the file system.

  It reads directories, and nothing else; it opens nothing for writing, and gives up all ways to gain privileges.
  It follows no link below a folder and enters no other file system mounted there; when something is mounted below a
  folder, or unmounted, the folder is walked again. What is named .tarn, at any depth, is neither watched nor told.

PROTOCOL
  Records end with a NUL byte. ID is a decimal number below 2^64 that the reader chose; PATH is relative to the folder,
  bytes as the kernel has them.

  Standard input:
    watch ID PATH       watch the folder PATH; an ID that is taken is forgotten first
    forget ID           give back its watches and say nothing more of it; records under way may still come

  Standard output:
    ready ID N          all of the folder is seen from now on: N directories. Always after `tree ID `
    dirty ID PATH       look at this entry: it was made, changed or removed
    tree ID PATH        look at everything at and below PATH; an empty PATH is the whole folder
    blind ID CODE TEXT  the folder is not seen any more, and why
    alive 0             every 5 seconds, of no folder: whoever hears nothing for long is not served any more

  A folder is silent until it is ready. After `blind ID overflow` it is walked again, up to the next `ready`. After any
  other CODE its watches are given back, and it stays blind until it is asked for again:
    watch-limit         fs.inotify.max_user_watches is reached
    instance-limit      fs.inotify.max_user_instances, or the limit of descriptors, is reached
    unmounted           its file system was unmounted
    replaced            its path leads to another directory
    gone                its path leads to no directory
    unreadable          its directory may not be read
    unsupported         it is on a network file system or FUSE, which changes without telling this kernel
    error               anything else; also a directory that another folder has, too

  A record that waits is not repeated. When the reader is slow and 1 MiB waits, `tree ID ` takes the place of what
  waits.

EXIT STATUS
  0   standard input ended, or nobody reads standard output any more: so it ends with whoever started it. Thus
      DIRECTORYs by hand want a terminal, or another input that stays open
  65  a record of standard input was not understood
  71  the system refused something that it cannot do without

LIMITS
  - A watch is taken for each directory (fs.inotify.max_user_watches), some 150 bytes of memory here and 100 to 1,000 in
    the kernel.
  - Not told: writes through a memory map, changes made below by another machine or through another mount's upper layer,
    and what lies in directories that may not be read (their chmod is told).
  - Whether a folder's path still leads to it is looked at every 5 seconds, and whenever something is mounted.
  - A path longer than 4,095 bytes is told as `tree` of the directory above that is not.
  - At most 1,024 folders.
*/

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "watch.h"

enum { CHECK_PERIOD = 5000, FLUSH_DELAY = 10, MOUNTS_PAUSE = 250, MAX_COMMAND = 8192 };

// --- commands ---------------------------------------------------------------------------------------------------

static bool take_command(const char *record) {
  bool is_watch = strncmp(record, "watch ", 6) == 0;
  if (!is_watch && strncmp(record, "forget ", 7) != 0) return false;
  const char *number = strchr(record, ' ') + 1;
  if (*number < '0' || *number > '9') return false;
  char *rest;
  errno = 0;
  uint64_t id = strtoull(number, &rest, 10);
  if (errno || *rest != (is_watch ? ' ' : 0)) return false;
  if (is_watch && !rest[1]) return false;
  if (is_watch) folder_watch(id, rest + 1);
  else folder_forget(id);
  return true;
}

// Reads what there is. Ends the program at the end of the input.
static void take_commands(void) {
  static char input[MAX_COMMAND];
  static size_t length;
  ssize_t count = read(STDIN_FILENO, input + length, sizeof input - length);
  if (count == -1 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    output_flush();
    exit(EX_OK);
  }
  length += (size_t)count;
  char *record = input, *end;
  while ((end = memchr(record, 0, length - (size_t)(record - input)))) {
    if (!take_command(record)) {
      fprintf(stderr, "tarn-watch: not understood: %.100s\n", record);
      exit(EX_DATAERR);
    }
    record = end + 1;
  }
  length -= (size_t)(record - input);
  memmove(input, record, length);
  if (length == sizeof input) {
    fprintf(stderr, "tarn-watch: a record of more than %d bytes\n", MAX_COMMAND);
    exit(EX_DATAERR);
  }
}

// --- the loop ---------------------------------------------------------------------------------------------------

static int mounts = -1;
static int64_t next_check, flush_at, mounts_at;

static void sooner(int64_t *due, int64_t moment) {
  if (moment != -1 && moment < *due) *due = moment;
}

// How long nothing has to be done, milliseconds.
static int patience(int64_t now) {
  if (!queue_is_empty()) return 0;
  int64_t due = next_check;
  if (mounts_at > now) sooner(&due, mounts_at);
  sooner(&due, limbo_due());
  // Once its time has come it waits for the reader, which poll tells.
  if (!output_is_empty() && flush_at > now) sooner(&due, flush_at);
  return due > now ? (int)(due - now) : 0;
}

// Writes in bursts: what repeats within a few milliseconds is told once.
static void write_out(int64_t now) {
  static bool is_waiting;
  bool is_empty = output_is_empty();
  if (!is_empty && !is_waiting) flush_at = now + FLUSH_DELAY;
  is_waiting = !is_empty;
  if (is_empty || now < flush_at) return;
  if (!output_flush()) exit(EX_OK);
  is_waiting = !output_is_empty();
  flush_at = now;
}

static void turn(void) {
  int64_t now = milliseconds();
  bool is_due = !output_is_empty() && now >= flush_at;
  struct pollfd polled[] = {
      {.fd = output_is_half_full() ? -1 : STDIN_FILENO, .events = POLLIN},
      {.fd = STDOUT_FILENO, .events = is_due ? POLLOUT : 0},
      {.fd = library_descriptor(), .events = POLLIN},
      // The kernel keeps what happened meanwhile.
      {.fd = now < mounts_at ? -1 : mounts, .events = POLLPRI},
  };
  if (poll(polled, sizeof polled / sizeof *polled, patience(now)) == -1 && errno != EINTR) exit(EX_OSERR);
  if (polled[1].revents & (POLLERR | POLLHUP | POLLNVAL)) exit(EX_OK);
  if (polled[0].revents) take_commands();
  events_take();
  now = milliseconds();
  if (polled[3].revents || now >= next_check) {
    folders_check();
    if (polled[3].revents) {
      folders_remounted();
      mounts_at = now + MOUNTS_PAUSE;
    }
    tell_alive();
    next_check = now + CHECK_PERIOD;
  }
  walk_step();
  limbo_step(now);
  if (queue_is_empty()) folders_finish_walk();
  if (!library_is_open()) folders_lost();
  write_out(milliseconds());
}

int main(int count, char **arguments) {
  signal(SIGPIPE, SIG_IGN);
  // What came along by mistake may be the end of somebody's pipe.
  close_range(STDERR_FILENO + 1, ~0U, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // libinotifytools' descriptor has to be a small one, and none of the three: see library.c.
  for (int standard = 0; standard < 3; standard++) {
    if (fcntl(standard, F_GETFD) == -1) exit(EX_OSERR);
  }
  library_open();
  struct stat output;
  if (fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode))) {
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
  }
  mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  mounts_read();
  next_check = milliseconds() + CHECK_PERIOD;
  for (int index = 1; index < count; index++) folder_watch((uint64_t)index - 1, arguments[index]);
  for (;;) turn();
}
