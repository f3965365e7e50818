/*
 * A clock that can be wrong, for one process and its children: loaded with LD_PRELOAD, it stands before the clock calls
 * of libc. What is wrong with it is read at every call from a small mapped file, so that it can change at any moment:
 *
 *     CLOCK_SHIM_FILE = three numbers of 64 bits, in the byte order of the machine
 *       offset   ms that are added to the wall clock
 *       rate     parts per million by which all clocks run too fast (or, negative, too slow)
 *       since    ns of the true monotonic clock from which they do
 *
 * An offset never touches the monotonic clock. A rate does, as a clock that is slewed runs wrong everywhere: the waits
 * of epoll, which the kernel counts truly, are stretched or shortened to match. A missing file means a true clock.
 * System calls are made directly, because libc's own functions are what is replaced here.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef long long i64;
struct wrong { i64 offset_ms, rate_ppm, since_ns; };

static const struct wrong right;
static const volatile struct wrong *seen;

static const volatile struct wrong *wrong(void) {
  if (seen) return seen;
  const char *path = getenv("CLOCK_SHIM_FILE");
  int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0) : -1;
  void *map = file < 0 ? MAP_FAILED : mmap(0, sizeof right, PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  seen = map == MAP_FAILED ? &right : map;
  return seen;
}

static i64 ns_of(const struct timespec *at) { return (i64)at->tv_sec * 1000000000LL + at->tv_nsec; }

static i64 steady_ns(void) {
  struct timespec at;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &at);
  return ns_of(&at);
}

/* By how much all clocks are ahead by now, because they run at a wrong rate. */
static i64 gained_ns(const volatile struct wrong *by, i64 now_ns) {
  return by->rate_ppm ? (now_ns - by->since_ns) * by->rate_ppm / 1000000 : 0;
}

int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = (int)syscall(SYS_clock_gettime, id, at);
  int is_wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
  int is_steady = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME;
  if (failed || !(is_wall || is_steady)) return failed;
  const volatile struct wrong *by = wrong();
  i64 ns = ns_of(at);
  /* A steady clock gains by its own reading, so that it never steps back. */
  i64 gained = is_steady || by->rate_ppm == 0 ? gained_ns(by, ns) : gained_ns(by, steady_ns());
  ns += gained + (is_wall ? by->offset_ms * 1000000LL : 0);
  at->tv_sec = ns / 1000000000LL;
  at->tv_nsec = ns % 1000000000LL;
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

/* What the caller means by so many ms, in true ms, rounded up: a wait of 0 would spin. */
static int wait_ms(int ms) {
  i64 rate = 1000000 + wrong()->rate_ppm;
  return ms <= 0 ? ms : (int)(((i64)ms * 1000000 + rate - 1) / rate);
}

int epoll_pwait(int epoll, struct epoll_event *events, int most, int ms, const sigset_t *mask) {
  return (int)syscall(SYS_epoll_pwait, epoll, events, most, wait_ms(ms), mask, 8);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int ms) {
  return epoll_pwait(epoll, events, most, ms, 0);
}
