/*
 * Prints the frequency of this machine's time stamp counter in kHz. The guest reads the same counter,
 * but a guest on a busy host may measure a wrong multiple of the frequency.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct reading {
    uint64_t ticks;
    int64_t nanoseconds;
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Returns the fastest of many readings, which was the least interrupted. */
static struct reading read_both(void)
{
    struct reading best = {0, 0};
    int64_t least = INT64_MAX;
    for (int i = 0; i < 1000; i++) {
        int64_t before = now();
        uint64_t ticks = __rdtsc();
        int64_t after = now();
        if (after - before < least) {
            least = after - before;
            best.ticks = ticks;
            best.nanoseconds = before + least / 2;
        }
    }
    return best;
}

int main(void)
{
    struct timespec pause = {0, 100 * 1000 * 1000};
    struct reading first = read_both();
    nanosleep(&pause, NULL);
    struct reading second = read_both();
    double ticks = (double)(second.ticks - first.ticks);
    printf("%.0f\n", ticks * 1e6 / (double)(second.nanoseconds - first.nanoseconds));
    return 0;
}
