/* Compares the header's constants with the library, at compile time and for many groups, and checks
 * the results of wrong arguments. */
#include "../include/tramontane.h"

#include <stdio.h>

_Static_assert(TRAMONTANE_SLOT_STRIDE(0) == 16, "an empty message has a header of 12 bytes");
_Static_assert(TRAMONTANE_SLOT_STRIDE(4) == 16, "4 bytes and the header");
_Static_assert(TRAMONTANE_SLOT_STRIDE(5) == 32, "on a multiple of 16");
_Static_assert(TRAMONTANE_SLOT_STRIDE(100) == 112, "100 bytes and the header");
_Static_assert(TRAMONTANE_ROW_BYTES(100, 10240) == 128 + 128 + 1025664,
               "the row of the core's own example");
_Static_assert(sizeof(struct tramontane_outbox) == TRAMONTANE_OUTBOX_WORDS * 8, "only the words");
_Static_assert(offsetof(struct tramontane_slot, words) % 8 == 0, "words are aligned");
_Static_assert(offsetof(struct tramontane_message, place) == 8, "the same as in the library");
_Static_assert(sizeof(struct tramontane_progress) == 24, "the same as in the library");
_Static_assert(TRAMONTANE_STATE_ALIGN % TRAMONTANE_CACHE_LINE == 0, "state suits rows");

static int wrong;

static void expect(bool holds, const char *what) {
    if (!holds) {
        printf("c: %s: FAILED\n", what);
        wrong = 1;
    }
}

static uint32_t nodes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static uint16_t ranks[8] = {0, 1, 2, 3, 4, 5, 6, 7};

int main(void) {
    for (uint16_t members = 1; members <= 8; members++) {
        for (uint32_t window = 1; window <= 65; window += 16) {
            for (uint32_t message_max = 0; message_max < 200; message_max += 7) {
                struct tramontane_subgroup subgroup = {ranks, members, ranks, members,
                                                       window, message_max, false};
                struct tramontane_group group = {nodes, members, &subgroup, 1, false};
                size_t row, state;
                expect(tramontane_row_bytes(&group, members - 1, &row) == TRAMONTANE_OK &&
                           row == TRAMONTANE_ROW_BYTES(window, message_max),
                       "bytes of a row");
                expect(tramontane_state_bytes(&group, 0, &state) == TRAMONTANE_OK &&
                           state <= TRAMONTANE_STATE_BYTES(members, window),
                       "bytes of state");
                expect(tramontane_row_bytes(&group, members, &row) == TRAMONTANE_NOT_A_MEMBER,
                       "a rank outside the group");
            }
        }
    }
    struct tramontane_subgroup subgroup = {ranks, 2, ranks, 2, 4, 50, false};
    struct tramontane_group group = {nodes, 2, &subgroup, 1, false}, other = group;
    uint64_t one, two;
    expect(tramontane_digest(&group, &one) == TRAMONTANE_OK, "a digest");
    other.has_checks = true;
    expect(tramontane_digest(&other, &two) == TRAMONTANE_OK && one != two, "another digest");
    expect(tramontane_digest(NULL, &two) == TRAMONTANE_BAD_POINTER, "no group");
    expect(tramontane_digest(&group, NULL) == TRAMONTANE_BAD_POINTER, "no pointer for the digest");
    other = group;
    other.subgroup_count = 9;
    expect(tramontane_digest(&other, &two) != TRAMONTANE_OK, "too many subgroups");
    subgroup.window = 0;
    expect(tramontane_digest(&group, &two) == TRAMONTANE_BAD_GROUP, "a window of 0 slots");
    subgroup.window = 4;

    static _Alignas(TRAMONTANE_STATE_ALIGN) uint8_t state[TRAMONTANE_STATE_BYTES(2, 4)];
    static _Alignas(TRAMONTANE_CACHE_LINE) uint8_t rows[2][TRAMONTANE_ROW_BYTES(4, 50)];
    uint8_t *lists[2] = {rows[0], rows[1]};
    struct tramontane_node *node;
    struct tramontane_fabric fabric = {NULL, NULL, NULL, sizeof rows[0]};
    struct tramontane_setup setup = {&group, 0, lists, state, sizeof state, 0};
    struct tramontane_setup small = setup, odd = setup, stranger = setup;
    small.state_bytes = 200;
    odd.state = state + 8;
    stranger.rank = 2;
    expect(tramontane_open(&small, &fabric, &node) == TRAMONTANE_TOO_SMALL, "too little state");
    expect(tramontane_open(&odd, &fabric, &node) == TRAMONTANE_BAD_POINTER, "misaligned state");
    expect(tramontane_open(&stranger, &fabric, &node) == TRAMONTANE_NOT_A_MEMBER, "a rank that is not a member");
    fabric.write_bytes_max = 8;
    expect(tramontane_open(&setup, &fabric, &node) == TRAMONTANE_BAD_FABRIC, "short writes");
    fabric.write_bytes_max = sizeof rows[0];
    expect(tramontane_open(&setup, &fabric, &node) == TRAMONTANE_OK, "an open node");
    struct tramontane_outbox outbox;
    struct tramontane_slot slot;
    expect(tramontane_outbox_of(node, 1, &outbox) == TRAMONTANE_NOT_A_MEMBER, "no subgroup");
    expect(tramontane_outbox_of(node, 0, &outbox) == TRAMONTANE_OK, "an outbox");
    expect(tramontane_reserve(&outbox, 51, &slot) == TRAMONTANE_TOO_LARGE, "a large message");
    for (int i = 0; i < 4; i++) {
        expect(tramontane_reserve(&outbox, 50, &slot) == TRAMONTANE_OK, "a slot");
        expect(tramontane_drop(&slot) == TRAMONTANE_OK, "a dropped slot");
    }
    expect(tramontane_reserve(&outbox, 1, &slot) == TRAMONTANE_FULL, "a full ring");
    expect(tramontane_apply(rows[1], sizeof rows[1], sizeof rows[1] - 4, state, 8) ==
               TRAMONTANE_OUT_OF_ROW,
           "a write outside the row");
    if (!wrong) {
        printf("c: the header matches the library: ok\n");
    }
    return wrong;
}
