//! The queue for a joining node. It contains everything that the member has for the node and that
//! the node has not received yet (VIE-10).
//!
//! # Invariants
//! - A queue holds at most [`BACKLOG_MAX`] bytes of messages, plus the maximum number of bytes of
//!   large messages that the group can have in flight. Messages count until they have been sent.
//! - A message is copied only once for all joining nodes that are supplied with it.
//! - A joining node that falls too far behind holds the member back, and therefore the group. After
//!   a total of [`HELD_MAX`] without progress, the node is given up.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tramontane_core::ids::{SubgroupId, ViewId};

use crate::group::description::view::View;
use crate::group::durable::comparison::SharedLog;
use crate::group::durable::delivered::SharedMessage;
use crate::group::join::admission::{Admission, SentCount};

/// The number of message bytes that may wait for one joining node, excluding large messages.
const BACKLOG_MAX: usize = 256 << 20;

/// The number of bytes by which a node may be behind while it receives a state, before it holds the
/// member back.
const FAR_BEHIND: usize = BACKLOG_MAX / 2;

/// The number of bytes by which a node may be behind when the group is asked to admit it. The node
/// has to receive them during the view change.
const CLOSE_BEHIND: usize = 8 << 20;

/// The memory overhead per message, in bytes.
const MESSAGE_COST: usize = 64;

/// The number of bytes up to which messages are sent together. If they were sent individually, a
/// node that joins a busy group would never catch up.
pub(crate) const TOGETHER_MAX: usize = 256 << 10;

/// The total time for which a joining node may hold the member back without catching up. Waits
/// during which it catches up do not count.
pub(crate) const HELD_MAX: Duration = Duration::from_secs(10);

/// The interval between checks of whether a joining node is still connected.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The state of a subgroup, to be read while the group continues.
pub(crate) struct SuppliedState {
    pub(crate) subgroup: SubgroupId,
    /// The view that the state belongs to. The state is that after the first `records` records of
    /// the subgroup's log, if there is one.
    pub(crate) view: ViewId,
    pub(crate) records: u64,
    pub(crate) content: Content,
}

/// The source from which a joining node restores its state.
pub(crate) enum Content {
    /// The application's state.
    State(Box<dyn Read + Send>),
    /// The node's own log, and the records of this member's log starting at that number.
    Records { log: SharedLog, from: u64 },
}

/// The states of some subgroups.
pub(crate) type States = Vec<SuppliedState>;

/// An entry in a joining node's queue.
pub(crate) enum Supplied {
    NotNow(String),
    /// States as they were when the queue began.
    States(States),
    /// States for a node that the current view has admitted. Nothing follows them.
    Late(States, Arc<Admission>, Vec<SentCount>),
    Message(SharedMessage, usize),
    /// The node must find suppliers in this view.
    Choose(View),
    /// The node has been admitted, after this number of messages.
    Member(Arc<Admission>, Vec<SentCount>),
    /// The node was too slow.
    GivenUp,
}

/// The number of bytes by which a joining node is behind, shared by both sides of its queue.
#[derive(Debug)]
struct Backlog {
    bytes: AtomicUsize,
    /// The limit above which the node holds the member back.
    bearable: AtomicUsize,
    /// Set once no thread takes entries any longer.
    is_over: AtomicBool,
}

/// The member's side of a joining node's queue.
#[derive(Clone)]
pub(crate) struct Sink {
    sender: Sender<Supplied>,
    backlog: Arc<Backlog>,
    backlog_max: usize,
}

impl Sink {
    /// Creates both sides of a queue.
    pub(crate) fn new() -> (Self, SupplyQueue) {
        let (sender, receiver) = channel();
        let backlog = Backlog {
            bytes: AtomicUsize::new(0),
            bearable: AtomicUsize::new(FAR_BEHIND),
            is_over: AtomicBool::new(false),
        };
        let sink = Self { sender, backlog: Arc::new(backlog), backlog_max: BACKLOG_MAX };
        let queue = SupplyQueue { receiver, backlog: Arc::clone(&sink.backlog), held: None };
        (sink, queue)
    }

    /// Adds room for `bytes` bytes of large messages.
    pub(crate) fn with_large(mut self, bytes: usize) -> Self {
        self.backlog_max = self.backlog_max.saturating_add(bytes);
        self
    }

    /// Adds an entry. Returns false if no thread takes entries any longer.
    pub(crate) fn put(&self, supplied: Supplied) -> bool {
        self.sender.send(supplied).is_ok()
    }

    /// Adds a message. Returns false if the joining node has been lost, or is too slow.
    pub(crate) fn put_message(&self, message: &SharedMessage) -> bool {
        let cost = message.payload.len() + MESSAGE_COST;
        // No other thread adds to the backlog.
        if self.backlog.bytes.load(Ordering::Relaxed).saturating_add(cost) > self.backlog_max {
            self.put(Supplied::GivenUp);
            return false;
        }
        self.backlog.bytes.fetch_add(cost, Ordering::Relaxed);
        self.put(Supplied::Message(message.clone(), cost))
    }

    /// Returns whether this is the queue with the given id.
    pub(crate) fn leads_to(&self, id: &QueueId) -> bool {
        Arc::ptr_eq(&self.backlog, &id.0)
    }

    /// Returns whether no thread takes entries any longer, because the node has what it needs or
    /// has been lost.
    pub(crate) fn is_over(&self) -> bool {
        self.backlog.is_over.load(Ordering::Relaxed)
    }

    /// Returns whether the member must wait before it delivers more.
    pub(crate) fn is_behind(&self) -> bool {
        self.backlog.bytes.load(Ordering::Relaxed) > self.backlog.bearable.load(Ordering::Relaxed)
    }
}

/// Identifies a queue.
pub(crate) struct QueueId(Arc<Backlog>);

/// The member has ended, so no further entries come.
#[derive(Debug)]
pub(crate) struct MemberEnded;

/// The receiving side of a queue.
pub(crate) struct SupplyQueue {
    receiver: Receiver<Supplied>,
    backlog: Arc<Backlog>,
    /// The entry that followed the last batch of messages, and that is taken next.
    held: Option<Supplied>,
}

impl SupplyQueue {
    /// Takes the next entry. Returns `None` if none arrives in time, or if `is_over` returns true
    /// in the meantime.
    pub(crate) fn take(
        &mut self,
        patience: Duration,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<Supplied>, MemberEnded> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        let until = Instant::now() + patience;
        loop {
            match self.receiver.recv_timeout(LOOK_PAUSE.min(patience)) {
                Ok(supplied) => return Ok(Some(supplied)),
                Err(RecvTimeoutError::Disconnected) => return Err(MemberEnded),
                Err(RecvTimeoutError::Timeout) if is_over() || Instant::now() >= until => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns the id of this queue.
    pub(crate) fn id(&self) -> QueueId {
        QueueId(Arc::clone(&self.backlog))
    }

    /// Takes further queued messages that can be sent together with the first. Returns all of them
    /// with their cost.
    pub(crate) fn take_more(
        &mut self,
        first: SharedMessage,
        cost: usize,
    ) -> (Vec<SharedMessage>, usize) {
        let (mut taken, mut bytes) = (vec![first], cost);
        while bytes < TOGETHER_MAX {
            match self.receiver.try_recv() {
                Ok(Supplied::Message(message, cost)) => {
                    taken.push(message);
                    bytes += cost;
                }
                Ok(other) => {
                    self.held = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        (taken, bytes)
    }

    /// Records that messages of this cost have been sent, so that they no longer count.
    pub(crate) fn release(&self, bytes: usize) {
        self.backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the number of waiting bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.backlog.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the group may be asked to admit the node, because it can receive the rest
    /// quickly.
    pub(crate) fn is_close(&self) -> bool {
        self.bytes() <= CLOSE_BEHIND
    }

    /// Sets whether the node is only catching up, so that the member may wait for it, or has other
    /// things to do.
    pub(crate) fn catches_up(&self, alone: bool) {
        let bearable = if alone { CLOSE_BEHIND } else { FAR_BEHIND };
        self.backlog.bearable.store(bearable, Ordering::Relaxed);
    }
}

impl Drop for SupplyQueue {
    /// A lost node does not hold the member back.
    fn drop(&mut self) {
        self.backlog.bearable.store(usize::MAX, Ordering::Relaxed);
        self.backlog.is_over.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::description::terms::Description;
    use crate::group::join::join_messages::tests::message;
    use crate::group::large::limits::LARGE_MAX;

    #[test]
    fn joiner_queue_is_bounded_without_copying_messages() {
        let one = message(&[7; 1000]);
        let cost = 1000 + MESSAGE_COST;
        let queues: Vec<_> = (0..2).map(|_| Sink::new()).collect();
        let mut held = Vec::new();
        for (mut sink, mut queue) in queues {
            sink.backlog_max = 3 * cost - 1;
            assert!(sink.put_message(&one) && sink.put_message(&one));
            let Ok(Supplied::Message(first, first_cost)) = queue.receiver.try_recv() else {
                panic!("a message")
            };
            let (messages, bytes) = queue.take_more(first, first_cost);
            assert_eq!((messages.len(), bytes), (2, 2 * cost));
            // The first messages are still being sent, so there is no room before that has been
            // done.
            assert!(!sink.put_message(&one), "a third is too much");
            assert!(matches!(queue.receiver.try_recv(), Ok(Supplied::GivenUp)));
            queue.release(bytes);
            assert!(sink.put_message(&one));
            held.extend(messages);
        }
        assert!(held.iter().all(|message| Arc::ptr_eq(&message.0, &one.0)));
    }

    #[test]
    fn lagging_joiner_slows_down_its_supplier() {
        let megabyte = message(&vec![7; 1 << 20]);
        let (sink, queue) = Sink::new();
        let put = |count: usize| (0..count).for_each(|_| assert!(sink.put_message(&megabyte)));
        put(20);
        assert!(!sink.is_behind(), "it takes a state over");
        queue.catches_up(true);
        assert!(sink.is_behind() && !queue.is_close());
        queue.release(14 * ((1 << 20) + MESSAGE_COST));
        assert!(!sink.is_behind() && queue.is_close());
        queue.catches_up(false);
        put(130);
        assert!(sink.is_behind());
        drop(queue);
        assert!(!sink.is_behind() && !sink.put_message(&megabyte));
    }

    /// Even if all large messages that can be in flight are delivered at once, the joining node
    /// does not count as too slow.
    #[test]
    fn large_messages_use_separate_queue_space() {
        let mut description = Description::local("large", 3, 8, 16);
        let (sink, _) = Sink::new();
        let small = sink.clone().with_large(description.large_pool_bytes()).backlog_max;
        assert_eq!(small, BACKLOG_MAX);
        description.subgroups[0].large_max = LARGE_MAX;
        let window = usize::try_from(description.subgroups[0].large_window).expect("it is small");
        let all = 3 * window * (usize::try_from(LARGE_MAX).expect("it fits") + MESSAGE_COST);
        assert!(sink.with_large(description.large_pool_bytes()).backlog_max > all);
    }
}
