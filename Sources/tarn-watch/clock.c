// SPDX-License-Identifier: GPL-2.0-only
// Time.

#define _GNU_SOURCE
#include <time.h>

#include "watch.h"

int64_t milliseconds(void) {
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  return (int64_t)moment.tv_sec * 1000 + moment.tv_nsec / 1000000;
}
