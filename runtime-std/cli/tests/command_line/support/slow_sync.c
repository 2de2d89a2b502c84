/* Makes each sync of a file wait first: SLOW_SYNC_MS milliseconds. For LD_PRELOAD. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int file) {
    const char *text = getenv("SLOW_SYNC_MS");
    long wait_ms = text ? atol(text) : 0;
    struct timespec wait = { wait_ms / 1000, wait_ms % 1000 * 1000000 };
    nanosleep(&wait, 0);
    return (int)syscall(SYS_fdatasync, file);
}
