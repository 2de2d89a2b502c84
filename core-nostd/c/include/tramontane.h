/* Tramontane: atomic multicast for C, without a heap. Written by cbindgen out of
 * core-nostd/c/library: `core-nostd/c/run` compares it with the sources. */

#ifndef TRAMONTANE_H
#define TRAMONTANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The post took the whole list, with the bytes as they were at the call.
 */
#define TRAMONTANE_TAKEN 0

/*
 The post took nothing of the list, because there is no room now.
 */
#define TRAMONTANE_QUEUE_FULL 1

/*
 The peer is gone. Any other result of a post means the same.
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
 Alignment of slots.
 */
#define TRAMONTANE_SLOT_ALIGN 16

/*
 Bytes of a slot in addition to its payload.
 */
#define TRAMONTANE_SLOT_HEADER 12

/*
 Most subgroups of a group in this library.
 */
#define TRAMONTANE_SUBGROUPS_MAX 8

/*
 Alignment of the state's memory.
 */
#define TRAMONTANE_STATE_ALIGN 128

/*
 Most bytes of state for the node itself.
 */
#define TRAMONTANE_NODE_BYTES 384

/*
 Most bytes of state per member of the group.
 */
#define TRAMONTANE_ROW_REF_BYTES 16

/*
 Most bytes of state per subgroup of the node.
 */
#define TRAMONTANE_SUBGROUP_BYTES 384

/*
 Most bytes of state per sender of these subgroups.
 */
#define TRAMONTANE_SENDER_BYTES 256

/*
 Most bytes of state per member of these subgroups.
 */
#define TRAMONTANE_MEMBER_BYTES 96

/*
 Most bytes of state per other member of these subgroups.
 */
#define TRAMONTANE_LINK_BYTES 192

/*
 Most bytes of state per subgroup that the node sends in.
 */
#define TRAMONTANE_HANDOFF_BYTES 384

/*
 Most bytes of state per slot of these subgroups.
 */
#define TRAMONTANE_READY_BYTES 8

/*
 Most words of an outbox.
 */
#define TRAMONTANE_OUTBOX_WORDS 16

/*
 Most words of a reservation.
 */
#define TRAMONTANE_SLOT_WORDS 20

/*
 The result of a call.
 */
enum tramontane_status {
    /*
     The call succeeded.
     */
    TRAMONTANE_OK = 0,
    /*
     A pointer is null, or is not aligned.
     */
    TRAMONTANE_BAD_POINTER = 1,
    /*
     The group is wrong: a member is listed twice, a sender is not a member, or a size is zero or
     too large.
     */
    TRAMONTANE_BAD_GROUP = 2,
    /*
     The rank is not in the group, or the subgroup does not exist.
     */
    TRAMONTANE_NOT_A_MEMBER = 3,
    /*
     Rows or state are smaller than the group requires.
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
     The message is larger than a slot.
     */
    TRAMONTANE_TOO_LARGE = 8,
    /*
     The range is outside the row.
     */
    TRAMONTANE_OUT_OF_ROW = 9,
    /*
     The slot was already committed or dropped.
     */
    TRAMONTANE_NO_SLOT = 10,
};

/*
 A node, stored in the state's memory.
 */
struct tramontane_node;

/*
 A subgroup: one delivery order among some members, fed by some of them.
 */
struct tramontane_subgroup {
    /*
     Members, by rank in the group.
     */
    const uint16_t *members;
    /*
     How many.
     */
    size_t member_count;
    /*
     Members that send, in sender order.
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
     Whether messages are delivered on receipt, without a common order.
     */
    bool is_unordered;
};

/*
 A group. Every member must use the same one.
 */
struct tramontane_group {
    /*
     Permanent node ids of the members, in rank order.
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
 The arguments for opening a node. All of its memory must be zeroed, belong only to this node,
 and stay valid.
 */
struct tramontane_setup {
    /*
     The group.
     */
    const struct tramontane_group *group;
    /*
     Local rank.
     */
    uint16_t rank;
    /*
     Row of each member, in rank order: the local one, and copies of the others'. Each begins on
     a cache line and has as many bytes as tramontane_row_bytes returns.
     */
    uint8_t *const *rows;
    /*
     State, aligned to TRAMONTANE_STATE_ALIGN.
     */
    uint8_t *state;
    /*
     Bytes of the state; tramontane_state_bytes returns how many are needed.
     */
    size_t state_bytes;
    /*
     Most messages that a step sends, receives and delivers in each subgroup; 0 for no limit.
     */
    uint32_t messages_max;
};

/*
 Bytes of the local row that a peer should receive, at the same offset of its copy.
 */
struct tramontane_write {
    /*
     Bytes from the start of the row.
     */
    size_t offset;
    /*
     Length in bytes.
     */
    size_t length;
};

/*
 Carries writes. Writes to one peer become visible in the order of the calls, and each aligned
 group of 8 bytes at once. No call waits, and none calls the node.
 */
struct tramontane_fabric {
    /*
     Passed to each call.
     */
    void *context;
    /*
     Takes a whole list of writes to one peer, or nothing of it. The bytes are copied before it
     returns.
     */
    int32_t (*post)(void *context,
                    uint16_t peer,
                    const struct tramontane_write *writes,
                    size_t count);
    /*
     Returns whether a peer was lost since the last call, and stores its rank. May be null.
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
     Sender's rank in the group.
     */
    uint16_t rank;
    /*
     Sequence position in the delivery order.
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
 Receives a message. It must not call the node.
 */
typedef void (*tramontane_deliver)(void *context, const struct tramontane_message *message);

/*
 The results of a step.
 */
struct tramontane_progress {
    /*
     Local slots published.
     */
    uint32_t sent;
    /*
     Slots received from peers.
     */
    uint32_t received;
    /*
     Messages handed over.
     */
    uint64_t delivered;
    /*
     Whether nothing was done and nothing waits: another step finds nothing until something
     arrives.
     */
    bool is_idle;
    /*
     Whether everything that this node sent was delivered everywhere, as far as it knows.
     */
    bool is_settled;
    /*
     Whether a peer was lost, now or in an earlier step, so that nothing more becomes stable.
     */
    bool is_lost;
    /*
     Number of the impossible value that a peer published, or 0.
     */
    uint8_t refused;
};

/*
 The sending end of one subgroup. Copies of it, and threads that use them, share it.
 */
struct tramontane_outbox {
    /*
     Private to the library.
     */
    uint64_t words[TRAMONTANE_OUTBOX_WORDS];
};

/*
 A slot in which a message is being built. It must not be copied.
 */
struct tramontane_slot {
    /*
     Payload to fill in; null once it was committed or dropped.
     */
    uint8_t *payload;
    /*
     Payload length in bytes.
     */
    size_t length;
    /*
     Private to the library.
     */
    uint64_t words[TRAMONTANE_SLOT_WORDS];
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Computes a number that two groups share only if they are the same. Members compare it before the
 first step.

 # Safety
 Pointers that are not null are valid, and so is everything that they point to.
 */
enum tramontane_status tramontane_digest(const struct tramontane_group *group, uint64_t *digest);

/*
 Computes the bytes of a member's row.

 # Safety
 Pointers that are not null are valid, and so is everything that they point to.
 */
enum tramontane_status tramontane_row_bytes(const struct tramontane_group *group,
                                            uint16_t rank,
                                            size_t *bytes);

/*
 Computes the bytes of state that a member needs.

 # Safety
 Pointers that are not null are valid, and so is everything that they point to.
 */
enum tramontane_status tramontane_state_bytes(const struct tramontane_group *group,
                                              uint16_t rank,
                                              size_t *needed);

/*
 Opens a node of a fixed membership. The members must have compared tramontane_digest before.

 # Safety
 Pointers that are not null are valid. The promises about memory in the setup hold as long as the
 node is used. Only this node stores in the local row, and only tramontane_apply stores in a
 copy.
 */
enum tramontane_status tramontane_open(const struct tramontane_setup *setup,
                                       const struct tramontane_fabric *fabric,
                                       struct tramontane_node **node);

/*
 Does the pending work: sends, receives, delivers and posts. It never waits. Only one thread at a
 time may step a node.

 # Safety
 `node` comes from tramontane_open, and no other call uses it meanwhile. The other pointers are
 valid, and the fabric is like the one that the node was opened with.
 */
enum tramontane_status tramontane_step(struct tramontane_node *node,
                                       uint64_t now_ns,
                                       const struct tramontane_fabric *fabric,
                                       tramontane_deliver deliver,
                                       void *context,
                                       struct tramontane_progress *progress);

/*
 Stores a peer's posted bytes in the copy of its row. Call it in the order in which they were
 posted, and not while the node is stepped.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `bytes` has `length`.
 */
enum tramontane_status tramontane_apply(uint8_t *row,
                                        size_t row_bytes,
                                        size_t offset,
                                        const uint8_t *bytes,
                                        size_t length);

/*
 Copies bytes out of a row, for a fabric that carries them elsewhere.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `into` has room for `length`.
 */
enum tramontane_status tramontane_read(uint8_t *row,
                                       size_t row_bytes,
                                       size_t offset,
                                       uint8_t *into,
                                       size_t length);

/*
 Returns the outbox of a subgroup that the node sends in.

 # Safety
 `node` comes from tramontane_open and is not stepped meanwhile; `outbox` is valid. The outbox is
 not used longer than the node's memory exists.
 */
enum tramontane_status tramontane_outbox_of(const struct tramontane_node *node,
                                            uint16_t subgroup,
                                            struct tramontane_outbox *outbox);

/*
 Reserves a slot for a message of `length` bytes. It never waits.

 # Safety
 `outbox` comes from tramontane_outbox_of; `slot` is valid, and contains no slot in which a
 message is being built.
 */
enum tramontane_status tramontane_reserve(const struct tramontane_outbox *outbox,
                                          size_t length,
                                          struct tramontane_slot *slot);

/*
 Commits the message that was built: the next step sends it.

 # Safety
 `slot` comes from tramontane_reserve; its payload is not used afterwards.
 */
enum tramontane_status tramontane_commit(struct tramontane_slot *slot);

/*
 Gives a slot back: no message is sent in its place.

 # Safety
 The same as for tramontane_commit.
 */
enum tramontane_status tramontane_drop(struct tramontane_slot *slot);

/*
 Computes a number that two groups share only if they are the same. Members compare it before the
 first step.

 # Safety
 Pointers that are not null are valid, and so is everything that they point to.
 */
enum tramontane_status tramontane_digest(const struct tramontane_group *group, uint64_t *digest);

/*
 Computes the bytes of a member's row.

 # Safety
 Pointers that are not null are valid, and so is everything that they point to.
 */
enum tramontane_status tramontane_row_bytes(const struct tramontane_group *group,
                                            uint16_t rank,
                                            size_t *bytes);

/*
 Computes the bytes of state that a member needs.

 # Safety
 Pointers that are not null are valid, and so is everything that they point to.
 */
enum tramontane_status tramontane_state_bytes(const struct tramontane_group *group,
                                              uint16_t rank,
                                              size_t *needed);

/*
 Opens a node of a fixed membership. The members must have compared tramontane_digest before.

 # Safety
 Pointers that are not null are valid. The promises about memory in the setup hold as long as the
 node is used. Only this node stores in the local row, and only tramontane_apply stores in a
 copy.
 */
enum tramontane_status tramontane_open(const struct tramontane_setup *setup,
                                       const struct tramontane_fabric *fabric,
                                       struct tramontane_node **node);

/*
 Does the pending work: sends, receives, delivers and posts. It never waits. Only one thread at a
 time may step a node.

 # Safety
 `node` comes from tramontane_open, and no other call uses it meanwhile. The other pointers are
 valid, and the fabric is like the one that the node was opened with.
 */
enum tramontane_status tramontane_step(struct tramontane_node *node,
                                       uint64_t now_ns,
                                       const struct tramontane_fabric *fabric,
                                       tramontane_deliver deliver,
                                       void *context,
                                       struct tramontane_progress *progress);

/*
 Stores a peer's posted bytes in the copy of its row. Call it in the order in which they were
 posted, and not while the node is stepped.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `bytes` has `length`.
 */
enum tramontane_status tramontane_apply(uint8_t *row,
                                        size_t row_bytes,
                                        size_t offset,
                                        const uint8_t *bytes,
                                        size_t length);

/*
 Copies bytes out of a row, for a fabric that carries them elsewhere.

 # Safety
 `row` is one of the rows of a setup and has `row_bytes` bytes; `into` has room for `length`.
 */
enum tramontane_status tramontane_read(uint8_t *row,
                                       size_t row_bytes,
                                       size_t offset,
                                       uint8_t *into,
                                       size_t length);

/*
 Returns the outbox of a subgroup that the node sends in.

 # Safety
 `node` comes from tramontane_open and is not stepped meanwhile; `outbox` is valid. The outbox is
 not used longer than the node's memory exists.
 */
enum tramontane_status tramontane_outbox_of(const struct tramontane_node *node,
                                            uint16_t subgroup,
                                            struct tramontane_outbox *outbox);

/*
 Reserves a slot for a message of `length` bytes. It never waits.

 # Safety
 `outbox` comes from tramontane_outbox_of; `slot` is valid, and contains no slot in which a
 message is being built.
 */
enum tramontane_status tramontane_reserve(const struct tramontane_outbox *outbox,
                                          size_t length,
                                          struct tramontane_slot *slot);

/*
 Commits the message that was built: the next step sends it.

 # Safety
 `slot` comes from tramontane_reserve; its payload is not used afterwards.
 */
enum tramontane_status tramontane_commit(struct tramontane_slot *slot);

/*
 Gives a slot back: no message is sent in its place.

 # Safety
 The same as for tramontane_commit.
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
