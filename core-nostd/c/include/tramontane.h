/* Tramontane: atomic multicast for C, without a heap. Written by cbindgen out of
 * core-nostd/c/library: `core-nostd/c/run` compares it with the sources. */

#ifndef TRAMONTANE_H
#define TRAMONTANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 A post took all of the list, as the bytes are now.
 */
#define TRAMONTANE_TAKEN 0

/*
 A post took nothing of it: there is no room now.
 */
#define TRAMONTANE_QUEUE_FULL 1

/*
 The peer is gone. What else a post returns means the same.
 */
#define TRAMONTANE_PEER_LOST 2

/*
 Bytes of a cache line: rows begin on a multiple of it.
 */
#define TRAMONTANE_CACHE_LINE 64

/*
 Bytes to which the parts of a row are rounded up.
 */
#define TRAMONTANE_BLOCK 128

/*
 Slots are laid on multiples of this.
 */
#define TRAMONTANE_SLOT_ALIGN 16

/*
 Bytes of a slot beside its payload.
 */
#define TRAMONTANE_SLOT_HEADER 12

/*
 Subgroups that a group may have here.
 */
#define TRAMONTANE_SUBGROUPS_MAX 8

/*
 What the state's memory is aligned to.
 */
#define TRAMONTANE_STATE_ALIGN 128

/*
 Bytes of state for the node itself, at most.
 */
#define TRAMONTANE_NODE_BYTES 384

/*
 Bytes of state for each member of the group, at most.
 */
#define TRAMONTANE_ROW_REF_BYTES 16

/*
 Bytes of state for each subgroup of the node, at most.
 */
#define TRAMONTANE_SUBGROUP_BYTES 384

/*
 Bytes of state for each sender of these, at most.
 */
#define TRAMONTANE_SENDER_BYTES 256

/*
 Bytes of state for each member of these, at most.
 */
#define TRAMONTANE_MEMBER_BYTES 96

/*
 Bytes of state for each other member of these, at most.
 */
#define TRAMONTANE_LINK_BYTES 192

/*
 Bytes of state for each subgroup that the node sends in, at most.
 */
#define TRAMONTANE_HANDOFF_BYTES 384

/*
 Bytes of state for each slot of these, at most.
 */
#define TRAMONTANE_READY_BYTES 8

/*
 Words of an outbox, at most.
 */
#define TRAMONTANE_OUTBOX_WORDS 16

/*
 Words of a reservation, at most.
 */
#define TRAMONTANE_SLOT_WORDS 20

/*
 What a call came to.
 */
enum tramontane_status {
    /*
     It did what it says.
     */
    TRAMONTANE_OK = 0,
    /*
     A pointer is null, or is not aligned.
     */
    TRAMONTANE_BAD_POINTER = 1,
    /*
     The group is wrong: a member twice, a sender that is no member, a size of none or too large.
     */
    TRAMONTANE_BAD_GROUP = 2,
    /*
     The rank is not in the group, or the subgroup is none.
     */
    TRAMONTANE_NOT_A_MEMBER = 3,
    /*
     Rows or state are smaller than the group needs.
     */
    TRAMONTANE_TOO_SMALL = 4,
    /*
     The fabric does not keep writes in order, or its limits are too small.
     */
    TRAMONTANE_BAD_FABRIC = 5,
    /*
     A step found that state and memory do not belong together.
     */
    TRAMONTANE_BROKEN = 6,
    /*
     No slot is free now: step the node, and try again.
     */
    TRAMONTANE_FULL = 7,
    /*
     The message is larger than a slot takes.
     */
    TRAMONTANE_TOO_LARGE = 8,
    /*
     The range lies outside of the row.
     */
    TRAMONTANE_OUT_OF_ROW = 9,
    /*
     The slot was committed or dropped already.
     */
    TRAMONTANE_NO_SLOT = 10,
};

/*
 A node; it lies in the state's memory.
 */
struct tramontane_node;

/*
 A subgroup: one delivery order among some members, fed by some of them.
 */
struct tramontane_subgroup {
    /*
     The members, by rank in the group.
     */
    const uint16_t *members;
    /*
     How many.
     */
    size_t member_count;
    /*
     Those that send, in sender order.
     */
    const uint16_t *senders;
    /*
     How many.
     */
    size_t sender_count;
    /*
     Slots of each sender.
     */
    uint32_t window;
    /*
     Bytes of the largest message.
     */
    uint32_t message_max;
    /*
     Whether messages are delivered on receipt, without one order.
     */
    bool is_unordered;
};

/*
 A group: every member is given the same one.
 */
struct tramontane_group {
    /*
     The members' lasting numbers, in rank order.
     */
    const uint32_t *members;
    /*
     How many.
     */
    size_t member_count;
    /*
     The subgroups.
     */
    const struct tramontane_subgroup *subgroups;
    /*
     How many; at most TRAMONTANE_SUBGROUPS_MAX.
     */
    size_t subgroup_count;
    /*
     Whether cells and slots carry checks.
     */
    bool has_checks;
};

/*
 What a node is opened on. All of the memory is zeros, belongs to this node alone, and stays.
 */
struct tramontane_setup {
    /*
     The group.
     */
    const struct tramontane_group *group;
    /*
     The own rank.
     */
    uint16_t rank;
    /*
     For each member, in rank order, its row: the own one, and copies of the others'. Each begins
     on a cache line and has as many bytes as tramontane_row_bytes says.
     */
    uint8_t *const *rows;
    /*
     State, aligned to TRAMONTANE_STATE_ALIGN.
     */
    uint8_t *state;
    /*
     How many bytes; tramontane_state_bytes says how many are needed.
     */
    size_t state_bytes;
    /*
     What a step sends, receives and delivers at most in each subgroup; 0 for no limit.
     */
    uint32_t messages_max;
};

/*
 Bytes of the own row that a peer should have, at the same place of its copy.
 */
struct tramontane_write {
    /*
     Bytes from the start of the row.
     */
    size_t offset;
    /*
     How many bytes.
     */
    size_t length;
};

/*
 What carries writes. Writes to one peer become visible in the order of the calls, and each
 aligned group of 8 bytes at once. No call waits, and none calls the node.
 */
struct tramontane_fabric {
    /*
     Handed to each call.
     */
    void *context;
    /*
     Takes all of a list of writes to one peer, or nothing of it. The bytes are copied before it
     returns.
     */
    int32_t (*post)(void *context,
                    uint16_t peer,
                    const struct tramontane_write *writes,
                    size_t count);
    /*
     Whether a peer was lost since the last call, and which. May be null.
     */
    bool (*lost)(void *context, uint16_t *peer);
    /*
     Bytes of the largest write.
     */
    size_t write_bytes_max;
};

/*
 A delivered message. The payload is lent until the call returns.
 */
struct tramontane_message {
    /*
     The subgroup.
     */
    uint16_t subgroup;
    /*
     The sender's rank in the group.
     */
    uint16_t rank;
    /*
     The place in the one order.
     */
    uint64_t place;
    /*
     The bytes.
     */
    const uint8_t *payload;
    /*
     How many.
     */
    size_t length;
};

/*
 What is handed a message. It does not call the node.
 */
typedef void (*tramontane_deliver)(void *context, const struct tramontane_message *message);

/*
 What a step did.
 */
struct tramontane_progress {
    /*
     Own slots published.
     */
    uint32_t sent;
    /*
     Slots of peers taken.
     */
    uint32_t received;
    /*
     Messages handed over.
     */
    uint64_t delivered;
    /*
     Nothing was done, and nothing waits: another step finds nothing until something comes.
     */
    bool is_idle;
    /*
     Everything that this node sent was delivered everywhere, as far as it knows.
     */
    bool is_settled;
    /*
     A peer is lost, so that nothing more becomes stable; now or in an earlier step.
     */
    bool is_lost;
    /*
     The number of what a peer published that no correct member does, or 0.
     */
    uint8_t refused;
};

/*
 The sending end of one subgroup. Copies of it, and threads that use them, share it.
 */
struct tramontane_outbox {
    /*
     Of the library.
     */
    uint64_t words[TRAMONTANE_OUTBOX_WORDS];
};

/*
 A slot that is being built in. It is not copied.
 */
struct tramontane_slot {
    /*
     Where the message is built; null once it was committed or dropped.
     */
    uint8_t *payload;
    /*
     How many bytes it has.
     */
    size_t length;
    /*
     Of the library.
     */
    uint64_t words[TRAMONTANE_SLOT_WORDS];
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 A number that two groups share only if they are the same. Members compare it before the first
 step.

 # Safety
 Pointers that are not null are valid, and so is all that they point to.
 */
enum tramontane_status tramontane_digest(const struct tramontane_group *group, uint64_t *digest);

/*
 Bytes of a member's row.

 # Safety
 Pointers that are not null are valid, and so is all that they point to.
 */
enum tramontane_status tramontane_row_bytes(const struct tramontane_group *group,
                                            uint16_t rank,
                                            size_t *bytes);

/*
 Bytes of state that a member needs.

 # Safety
 Pointers that are not null are valid, and so is all that they point to.
 */
enum tramontane_status tramontane_state_bytes(const struct tramontane_group *group,
                                              uint16_t rank,
                                              size_t *needed);

/*
 Opens a node of a fixed membership. The members have compared tramontane_digest before.

 # Safety
 Pointers that are not null are valid. What the setup says of memory holds as long as the node is
 used; nobody stores in the own row but this node, and in a copy but tramontane_apply.
 */
enum tramontane_status tramontane_open(const struct tramontane_setup *setup,
                                       const struct tramontane_fabric *fabric,
                                       struct tramontane_node **node);

/*
 Does what there is to do: sends, receives, delivers, posts. It never waits. One thread at a time
 steps a node.

 # Safety
 `node` is that of tramontane_open, and no other call uses it meanwhile; the other pointers are
 valid, and the fabric is as the one that it was opened with.
 */
enum tramontane_status tramontane_step(struct tramontane_node *node,
                                       uint64_t now_ns,
                                       const struct tramontane_fabric *fabric,
                                       tramontane_deliver deliver,
                                       void *context,
                                       struct tramontane_progress *progress);

/*
 Stores what a peer posted in the copy of its row: in the order in which it was posted, and not
 while the node is stepped.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `bytes` has `length`.
 */
enum tramontane_status tramontane_apply(uint8_t *row,
                                        size_t row_bytes,
                                        size_t offset,
                                        const uint8_t *bytes,
                                        size_t length);

/*
 Copies bytes out of a row, as a fabric does that carries them elsewhere.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `into` has room for `length`.
 */
enum tramontane_status tramontane_read(uint8_t *row,
                                       size_t row_bytes,
                                       size_t offset,
                                       uint8_t *into,
                                       size_t length);

/*
 The outbox of a subgroup that the node sends in.

 # Safety
 `node` is that of tramontane_open, and is not stepped meanwhile; `outbox` is valid. It is used
 no longer than the node's memory is there.
 */
enum tramontane_status tramontane_outbox_of(const struct tramontane_node *node,
                                            uint16_t subgroup,
                                            struct tramontane_outbox *outbox);

/*
 Takes a slot for a message of `length` bytes. It never waits.

 # Safety
 `outbox` is one of tramontane_outbox_of; `slot` is valid, and holds no slot that is built in.
 */
enum tramontane_status tramontane_reserve(const struct tramontane_outbox *outbox,
                                          size_t length,
                                          struct tramontane_slot *slot);

/*
 Sends the message that was built: the next step takes it.

 # Safety
 `slot` is one of tramontane_reserve; its payload is not used afterwards.
 */
enum tramontane_status tramontane_commit(struct tramontane_slot *slot);

/*
 Gives a slot back: nothing is sent in its place.

 # Safety
 As tramontane_commit.
 */
enum tramontane_status tramontane_drop(struct tramontane_slot *slot);

/*
 A number that two groups share only if they are the same. Members compare it before the first
 step.

 # Safety
 Pointers that are not null are valid, and so is all that they point to.
 */
enum tramontane_status tramontane_digest(const struct tramontane_group *group, uint64_t *digest);

/*
 Bytes of a member's row.

 # Safety
 Pointers that are not null are valid, and so is all that they point to.
 */
enum tramontane_status tramontane_row_bytes(const struct tramontane_group *group,
                                            uint16_t rank,
                                            size_t *bytes);

/*
 Bytes of state that a member needs.

 # Safety
 Pointers that are not null are valid, and so is all that they point to.
 */
enum tramontane_status tramontane_state_bytes(const struct tramontane_group *group,
                                              uint16_t rank,
                                              size_t *needed);

/*
 Opens a node of a fixed membership. The members have compared tramontane_digest before.

 # Safety
 Pointers that are not null are valid. What the setup says of memory holds as long as the node is
 used; nobody stores in the own row but this node, and in a copy but tramontane_apply.
 */
enum tramontane_status tramontane_open(const struct tramontane_setup *setup,
                                       const struct tramontane_fabric *fabric,
                                       struct tramontane_node **node);

/*
 Does what there is to do: sends, receives, delivers, posts. It never waits. One thread at a time
 steps a node.

 # Safety
 `node` is that of tramontane_open, and no other call uses it meanwhile; the other pointers are
 valid, and the fabric is as the one that it was opened with.
 */
enum tramontane_status tramontane_step(struct tramontane_node *node,
                                       uint64_t now_ns,
                                       const struct tramontane_fabric *fabric,
                                       tramontane_deliver deliver,
                                       void *context,
                                       struct tramontane_progress *progress);

/*
 Stores what a peer posted in the copy of its row: in the order in which it was posted, and not
 while the node is stepped.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `bytes` has `length`.
 */
enum tramontane_status tramontane_apply(uint8_t *row,
                                        size_t row_bytes,
                                        size_t offset,
                                        const uint8_t *bytes,
                                        size_t length);

/*
 Copies bytes out of a row, as a fabric does that carries them elsewhere.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `into` has room for `length`.
 */
enum tramontane_status tramontane_read(uint8_t *row,
                                       size_t row_bytes,
                                       size_t offset,
                                       uint8_t *into,
                                       size_t length);

/*
 The outbox of a subgroup that the node sends in.

 # Safety
 `node` is that of tramontane_open, and is not stepped meanwhile; `outbox` is valid. It is used
 no longer than the node's memory is there.
 */
enum tramontane_status tramontane_outbox_of(const struct tramontane_node *node,
                                            uint16_t subgroup,
                                            struct tramontane_outbox *outbox);

/*
 Takes a slot for a message of `length` bytes. It never waits.

 # Safety
 `outbox` is one of tramontane_outbox_of; `slot` is valid, and holds no slot that is built in.
 */
enum tramontane_status tramontane_reserve(const struct tramontane_outbox *outbox,
                                          size_t length,
                                          struct tramontane_slot *slot);

/*
 Sends the message that was built: the next step takes it.

 # Safety
 `slot` is one of tramontane_reserve; its payload is not used afterwards.
 */
enum tramontane_status tramontane_commit(struct tramontane_slot *slot);

/*
 Gives a slot back: nothing is sent in its place.

 # Safety
 As tramontane_commit.
 */
enum tramontane_status tramontane_drop(struct tramontane_slot *slot);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TRAMONTANE_H */

/* What a group with one ordered subgroup takes, of which all members send, without checks. For
 * `static` memory: tramontane_row_bytes and tramontane_state_bytes say the same of any group. */
#define TRAMONTANE_ROUND_UP(value, align) (((value) + ((align) - 1)) / (align) * (align))
#define TRAMONTANE_SLOT_STRIDE(message_max) \
    TRAMONTANE_ROUND_UP((message_max) + TRAMONTANE_SLOT_HEADER, TRAMONTANE_SLOT_ALIGN)
#define TRAMONTANE_ROW_BYTES(window, message_max) \
    (2 * TRAMONTANE_BLOCK + \
     TRAMONTANE_ROUND_UP((window) * TRAMONTANE_SLOT_STRIDE(message_max), TRAMONTANE_BLOCK))
#define TRAMONTANE_STATE_BYTES(members, window) \
    (TRAMONTANE_NODE_BYTES + TRAMONTANE_SUBGROUP_BYTES + \
     (members) * (TRAMONTANE_ROW_REF_BYTES + TRAMONTANE_SENDER_BYTES + TRAMONTANE_MEMBER_BYTES + \
                  TRAMONTANE_LINK_BYTES) + \
     TRAMONTANE_HANDOFF_BYTES + (window) * TRAMONTANE_READY_BYTES + TRAMONTANE_STATE_ALIGN)
