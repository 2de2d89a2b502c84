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
    /// A queue pair's rights change.
    SetAccess,
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

/// Event counts, which show what a run reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pieces placed later than they arrived.
    pub placed_late: u64,
    /// Pieces placed before older ones.
    pub placed_out_of_order: u64,
    /// Requests whose content was read at execution instead of at the post.
    pub read_late: u64,
    /// Requests carried out although the queue pair's access flags forbid them.
    pub flags_ignored: u64,
    /// Moves to RESET that led to ERROR.
    pub resets_to_error: u64,
    /// Requests and receives flushed.
    pub flushed: u64,
    /// Requests refused.
    pub refused: u64,
    /// Requests that found no receive.
    pub not_ready: u64,
    /// Retransmissions of requests.
    pub sent_again: u64,
    /// Requests received twice.
    pub seen_twice: u64,
    /// Messages lost at random.
    pub lost: u64,
    /// Messages that led nowhere: no such address or queue pair, a port that is down, a link that
    /// is cut.
    pub nowhere: u64,
    /// Messages lost because their packets were too long.
    pub too_long: u64,
    /// Completion queues that overflowed.
    pub overruns: u64,
    /// Faults carried out.
    pub faults: u64,
    /// Objects destroyed because their process was killed.
    pub killed_objects: u64,
}
