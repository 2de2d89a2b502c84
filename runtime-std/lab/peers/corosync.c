/* A member of a closed process group of Corosync, under the load of `tramontane-lab bench`. Without
 * an interval, each member sends as fast as its daemon accepts messages, and prints the deliveries
 * per second. With an interval, member 0 sends a message after the last one was delivered to it,
 * and each member prints the latency of each message in nanoseconds. Every byte is written and read.
 *
 * Usage: corosync MEMBERS RANK BYTES MESSAGES INTERVAL_US */
#include <corosync/cpg.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t delivered, checksum, *latencies;
static size_t members;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fail(const char *call, cs_error_t error) {
    fprintf(stderr, "corosync: %s: error %d of Corosync\n", call, (int)error);
    exit(1);
}

static void deliver(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t pid,
                    void *message, size_t bytes) {
    (void)handle, (void)group, (void)node, (void)pid;
    uint64_t word;
    if (latencies != NULL) {
        memcpy(&word, message, sizeof word);
        latencies[delivered] = now_ns() - word;
    }
    const unsigned char *byte = message;
    for (; bytes >= sizeof word; bytes -= sizeof word, byte += sizeof word) {
        memcpy(&word, byte, sizeof word);
        checksum += word;
    }
    while (bytes-- > 0) checksum += *byte++;
    delivered++;
}

static void changed(cpg_handle_t handle, const struct cpg_name *group,
                    const struct cpg_address *all, size_t count, const struct cpg_address *left,
                    size_t left_count, const struct cpg_address *joined, size_t joined_count) {
    (void)handle, (void)group, (void)all, (void)left, (void)left_count, (void)joined;
    (void)joined_count;
    members = count;
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "corosync MEMBERS RANK BYTES MESSAGES INTERVAL_US\n");
        return 2;
    }
    uint64_t numbers[5];
    for (int index = 0; index < 5; index++) numbers[index] = strtoull(arguments[index + 1], NULL, 10);
    size_t wanted = numbers[0], bytes = numbers[2];
    uint64_t messages = numbers[3], interval_ns = numbers[4] * 1000, rank = numbers[1];
    uint64_t total = interval_ns > 0 ? messages : messages * wanted;
    uint64_t own = interval_ns > 0 && rank != 0 ? 0 : messages;
    if (interval_ns > 0) latencies = calloc(messages, sizeof *latencies);
    char *payload = calloc(1, bytes + sizeof(uint64_t));
    struct iovec part = {payload, bytes};

    cpg_handle_t handle;
    cpg_callbacks_t callbacks = {deliver, changed};
    struct cpg_name group = {5, "peers"};
    cs_error_t error;
    struct timespec pause = {0, 5000000};
    /* A daemon that is starting refuses connections with various errors. */
    for (int tries = 0; (error = cpg_initialize(&handle, &callbacks)) != CS_OK; tries++) {
        if (tries == 1000) fail("cpg_initialize", error);
        nanosleep(&pause, NULL);
    }
    while ((error = cpg_join(handle, &group)) == CS_ERR_TRY_AGAIN) nanosleep(&pause, NULL);
    if (error != CS_OK) fail("cpg_join", error);
    struct pollfd ready = {.events = POLLIN};
    cpg_fd_get(handle, &ready.fd);

    uint64_t sent = 0, begun = 0, next = 0;
    while (delivered < total) {
        error = cpg_dispatch(handle, CS_DISPATCH_ALL);
        if (error != CS_OK && error != CS_ERR_TRY_AGAIN) fail("cpg_dispatch", error);
        if (begun == 0 && members == wanted) begun = next = now_ns();
        int is_full = 0;
        while (begun > 0 && sent < own && !is_full) {
            uint64_t now = now_ns();
            if (interval_ns > 0 && (delivered < sent || now < next)) break;
            memset(payload, (int)sent, bytes);
            if (interval_ns > 0) memcpy(payload, &now, sizeof now);
            error = cpg_mcast_joined(handle, CPG_TYPE_AGREED, &part, 1);
            if (error != CS_OK && error != CS_ERR_TRY_AGAIN) fail("cpg_mcast_joined", error);
            is_full = error != CS_OK;
            sent += error == CS_OK;
            next = now + interval_ns;
        }
        /* While there is room, the next message is sent as soon as possible. */
        int may_send = begun > 0 && sent < own && !is_full;
        poll(&ready, 1, may_send && interval_ns == 0 ? 0 : 1);
    }
    if (interval_ns == 0) printf("%.1f\n", (double)total / ((double)(now_ns() - begun) / 1e9));
    else for (uint64_t index = 0; index < messages; index++)
        printf("%llu\n", (unsigned long long)latencies[index]);
    fflush(stdout);
    /* The other members still count on this one, until the caller closes the input. */
    ready = (struct pollfd){.fd = 0, .events = POLLIN};
    poll(&ready, 1, -1);
    return checksum == 1; /* Read, so that the sum is not optimised away. */
}
