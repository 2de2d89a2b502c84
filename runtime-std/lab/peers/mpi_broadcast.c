/* MPI_Bcast as `tramontane-lab bench blocks` times block groups: from just before the root's call to the moment at which the last other
   rank has its own copy, by the machine's one clock. Prints nanoseconds, one line a message. No barrier is timed. */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    size_t bytes = strtoull(arguments[1], NULL, 10);
    uint64_t warm_ups = strtoull(arguments[2], NULL, 10);
    uint64_t messages = strtoull(arguments[3], NULL, 10);
    char *memory = malloc(bytes);
    if (memory == NULL || bytes > INT32_MAX) MPI_Abort(MPI_COMM_WORLD, 3);
    memset(memory, 1, bytes);
    for (uint64_t message = 0; message < warm_ups + messages; message++) {
        if (rank == 0)
            for (size_t place = 0; place < bytes; place += 4096) memory[place] = (char)message;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) /* Until the others, who left the barrier later, are in the broadcast. */
            for (uint64_t until = now_ns() + 200000; now_ns() < until;) sched_yield();
        uint64_t sent = now_ns();
        MPI_Bcast(memory, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        uint64_t had = rank == 0 ? 0 : now_ns(), last = 0;
        for (size_t place = 0; place < bytes; place += 4096)
            if (memory[place] != (char)message) MPI_Abort(MPI_COMM_WORLD, 7);
        MPI_Reduce(&had, &last, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && message >= warm_ups) printf("%llu\n", (unsigned long long)(last - sent));
    }
    free(memory);
    MPI_Finalize();
    return 0;
}
