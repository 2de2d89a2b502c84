//! Counts of commands and events.

use std::thread::ThreadId;

/// A kind of command to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandKind {
    /// Attributes of the device, of a port or of an address are queried.
    Query,
    /// A protection domain is allocated.
    AllocateDomain,
    /// A protection domain is freed.
    FreeDomain,
    /// Memory is registered.
    Register,
    /// A registration ends.
    Deregister,
    /// A completion queue is created.
    CreateCompletionQueue,
    /// A completion queue is destroyed.
    DestroyCompletionQueue,
    /// A queue pair is created.
    CreateQueuePair,
    /// A queue pair is destroyed.
    DestroyQueuePair,
    /// A queue pair moves to RESET.
    Reset,
    /// A queue pair moves to INIT.
    Initialise,
    /// A queue pair moves to RTR.
    ReadyToReceive,
    /// A queue pair moves to RTS.
    ReadyToSend,
    /// A queue pair's state is queried.
    QueryQueuePair,
    /// A queue pair is asked whether data is placed in order.
    QueryDataInOrder,
}

/// The number of commands of one kind by one thread on one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandCount {
    /// The kind of command.
    pub kind: CommandKind,
    /// The thread that made the commands.
    pub thread: ThreadId,
    /// The number of commands.
    pub count: u64,
}

/// Event counts, which show how much of the device's behaviour a run has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of pieces that were placed later than they arrived.
    pub placed_late: u64,
    /// Number of pieces that were placed before older ones.
    pub placed_out_of_order: u64,
    /// Number of requests whose content was read at execution instead of at the post.
    pub read_late: u64,
    /// Number of requests that were carried out although the queue pair's access flags forbid them.
    pub flags_ignored: u64,
    /// Number of moves to RESET that led to ERROR.
    pub resets_to_error: u64,
    /// Number of requests and receives that were flushed.
    pub flushed: u64,
    /// Requests refused.
    pub refused: u64,
    /// Number of requests that found no receive.
    pub not_ready: u64,
    /// Number of retransmissions of requests.
    pub sent_again: u64,
    /// Number of requests that were received twice.
    pub seen_twice: u64,
    /// Number of messages that were lost at random.
    pub lost: u64,
    /// Number of messages that led nowhere: no such address or queue pair, a port that is down, a
    /// link that is cut.
    pub nowhere: u64,
    /// Number of messages that were lost because their packets were too long.
    pub too_long: u64,
    /// Number of completion queues that overflowed.
    pub overruns: u64,
    /// Number of faults that were carried out.
    pub faults: u64,
    /// Number of objects that were destroyed because their process was killed.
    pub killed_objects: u64,
}
