// Runs one program and says what it cost, from outside and with next to no memory of its own: the kernel counts the memory
// of the process that called exec towards the peak of the one it became, so that Python in its place would hide small ones.
//
//   meter REPORT PROGRAM ARGUMENT...
//
// Writes one line to REPORT: status, or 128 + signal; wall seconds; seconds of user and of system CPU time, of the program
// and of all its children that were waited for; the peak resident memory in KiB of the largest process among them.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double of(struct timeval value) { return (double)value.tv_sec + (double)value.tv_usec / 1e6; }

int main(int count, char **arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: meter REPORT PROGRAM ARGUMENT...\n");
    return 64;
  }
  double begin = seconds();
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    close(null);
    execvp(arguments[2], arguments + 2);
    fprintf(stderr, "meter: %s: %s\n", arguments[2], strerror(errno));
    _exit(127);
  }
  int status = 0;
  struct rusage cost;
  if (child < 0 || wait4(child, &status, 0, &cost) < 0) {
    perror("meter");
    return 71;
  }
  double wall = seconds() - begin;
  FILE *report = fopen(arguments[1], "w");
  if (!report) {
    perror("meter");
    return 73;
  }
  fprintf(report, "%d %.6f %.6f %.6f %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), wall,
          of(cost.ru_utime), of(cost.ru_stime), cost.ru_maxrss);
  return fclose(report) == 0 ? 0 : 74;
}
