/* Preloaded into mongod: its date is so many milliseconds ahead of the machine's as a file says.
 *
 * The file holds one signed 64-bit number, in the machine's byte order, and is mapped: whoever
 * writes it steps the clock at that moment. CLOCK_MONOTONIC stays what it is. Deadlines that are
 * dates are taken back to the machine's date, and are looked at again every fifth of a second: a
 * kernel would end such a wait when the clock steps past its end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Past any uptime: a deadline above it is a date, one below it is monotonic. */
#define A_DATE 1000000000
#define A_FIFTH_MS 200
#define A_SECOND 1000000000

static const volatile int64_t *ahead;

__attribute__((constructor)) static void map_the_file(void) {
    const char *path = getenv("CLOCK_SHIM_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) abort();
    ahead = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (ahead == MAP_FAILED) abort();
    close(file);
}

static void add_ms(struct timespec *at, int64_t ms) {
    int64_t ns = at->tv_nsec + ms % 1000 * 1000000;
    at->tv_sec += ms / 1000 + ns / A_SECOND - (ns < 0);
    at->tv_nsec = ns < 0 ? ns + A_SECOND : ns % A_SECOND;
}

static int64_t ms_ahead(void) {
    return ahead == NULL ? 0 : *ahead;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        add_ms(at, ms_ahead());
    return failed;
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
    if (at != NULL) *at = now.tv_sec;
    return now.tv_sec;
}

static struct timespec on_the_machine(const struct timespec *deadline) {
    struct timespec real = *deadline;
    if (real.tv_sec > A_DATE) add_ms(&real, -ms_ahead());
    return real;
}

static struct timespec soon(void) {
    struct timespec at;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &at);
    add_ms(&at, A_FIFTH_MS);
    return at;
}

static int later(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec > other->tv_sec ||
           (one->tv_sec == other->tv_sec && one->tv_nsec > other->tv_nsec);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec real = on_the_machine(deadline), look_again = soon();
    if (next == NULL) next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (deadline->tv_sec <= A_DATE || !later(&real, &look_again))
        return next(condition, mutex, &real);
    next(condition, mutex, &look_again);
    return 0; /* Woken for no reason, as any wait may be: the caller looks at its clock. */
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline) {
    static int (*next)(sem_t *, const struct timespec *);
    struct timespec real = on_the_machine(deadline);
    if (next == NULL) next = dlsym(RTLD_NEXT, "sem_timedwait");
    return next(semaphore, &real);
}
