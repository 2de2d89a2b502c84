/* Two members with static memory in one program exchange 1,000 messages, and both deliver them in the
 * same order. Writes go from one memory to the other through a queue that is sometimes full. */
#include "../include/tramontane.h"

#include <stdio.h>
#include <string.h>

enum { MEMBERS = 2, WINDOW = 8, MESSAGE_MAX = 100, EACH = 500, STEPS_MAX = 20000 };
enum {
    ROW = TRAMONTANE_ROW_BYTES(WINDOW, MESSAGE_MAX),
    STATE = TRAMONTANE_STATE_BYTES(MEMBERS, WINDOW)
};

/* One member: its own row and the copy of the other's, its state, and its deliveries. */
struct member {
    _Alignas(TRAMONTANE_STATE_ALIGN) uint8_t state[STATE];
    _Alignas(TRAMONTANE_CACHE_LINE) uint8_t rows[MEMBERS][ROW];
    struct tramontane_node *node;
    struct tramontane_outbox outbox;
    uint16_t rank;
    uint32_t posts;
    unsigned sent;
    unsigned delivered[MEMBERS];
    uint64_t digest;
    bool is_wrong;
};

static struct member members[MEMBERS];

static size_t length_of(uint16_t rank, unsigned number) {
    return 4 + (number * 7 + rank) % (MESSAGE_MAX - 3);
}

/* Copies the bytes into the other's copy at once; every ninth post finds the queue full. */
static int32_t post(void *context, uint16_t peer, const struct tramontane_write *writes,
                    size_t count) {
    struct member *own = context;
    if (++own->posts % 9 == 0) {
        return TRAMONTANE_QUEUE_FULL;
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[ROW];
        uint8_t *from = own->rows[own->rank], *to = members[peer].rows[own->rank];
        if (tramontane_read(from, ROW, writes[i].offset, bytes, writes[i].length) ||
            tramontane_apply(to, ROW, writes[i].offset, bytes, writes[i].length)) {
            own->is_wrong = true;
        }
    }
    return TRAMONTANE_TAKEN;
}

static void deliver(void *context, const struct tramontane_message *message) {
    struct member *own = context;
    unsigned number = own->delivered[message->rank]++, said;
    memcpy(&said, message->payload, sizeof said);
    own->is_wrong |= said != number || message->length != length_of(message->rank, number);
    own->digest = (own->digest ^ message->rank ^ message->place << 8) * 0x100000001b3u;
}

static void send(struct member *own) {
    struct tramontane_slot slot;
    while (own->sent < EACH) {
        size_t length = length_of(own->rank, own->sent);
        if (tramontane_reserve(&own->outbox, length, &slot)) {
            return;
        }
        if (own->posts % 13 == 0) {
            own->posts++;
            tramontane_drop(&slot);
            continue;
        }
        memset(slot.payload, 0, length);
        memcpy(slot.payload, &own->sent, sizeof own->sent);
        own->is_wrong |= tramontane_commit(&slot) != TRAMONTANE_OK;
        own->is_wrong |= tramontane_commit(&slot) != TRAMONTANE_NO_SLOT;
        own->sent++;
    }
}

int main(void) {
    static const uint32_t nodes[MEMBERS] = {7, 9};
    static const uint16_t ranks[MEMBERS] = {0, 1};
    struct tramontane_subgroup subgroup = {ranks, MEMBERS, ranks, MEMBERS, WINDOW, MESSAGE_MAX,
                                           false};
    struct tramontane_group group = {nodes, MEMBERS, &subgroup, 1, false};
    struct tramontane_fabric fabrics[MEMBERS];
    for (uint16_t rank = 0; rank < MEMBERS; rank++) {
        struct member *own = &members[rank];
        uint8_t *rows[MEMBERS] = {own->rows[0], own->rows[1]};
        struct tramontane_setup setup = {&group, rank, rows, own->state, STATE, 0};
        own->rank = rank;
        fabrics[rank] = (struct tramontane_fabric){own, post, NULL, ROW};
        if (tramontane_open(&setup, &fabrics[rank], &own->node) ||
            tramontane_outbox_of(own->node, 0, &own->outbox)) {
            return 1;
        }
    }
    for (unsigned step = 0; step < STEPS_MAX; step++) {
        bool is_done = true;
        for (uint16_t rank = 0; rank < MEMBERS; rank++) {
            struct member *own = &members[rank];
            struct tramontane_progress progress;
            send(own);
            if (tramontane_step(own->node, step * 1000u, &fabrics[rank], deliver, own,
                                &progress)) {
                return 1;
            }
            own->is_wrong |= progress.is_lost || progress.refused;
            is_done &= own->delivered[0] == EACH && own->delivered[1] == EACH &&
                       progress.is_settled;
        }
        if (is_done) {
            bool agree = members[0].digest == members[1].digest;
            if (!agree || members[0].is_wrong || members[1].is_wrong) {
                break;
            }
            printf("c: two members, %d messages, same order: ok\n", MEMBERS * EACH);
            return 0;
        }
    }
    printf("c: the members disagree or are stuck: FAILED\n");
    return 1;
}
