//! Receipts, which are handles for sent messages, and their queries.
//!
//! | file | subject |
//! |---|---|
//! | `level` | the levels as types, and the proof that one is reached |
//! | `wait` | querying, waiting and awaiting |
//! | `counts` | the levels reached by a node's messages, shared with the thread that drives the member |
//! | `durable_marks` | which messages become durable with which count of the log |

pub(crate) mod counts;
pub(crate) mod durable_marks;
pub(crate) mod level;
pub(crate) mod ordinal;
pub(crate) mod wait;

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tramontane_core::ids::SubgroupId;

use self::level::{Accepted, Count, Delivered, DurableEverywhere, DurableHere, DurableMajority};
use self::ordinal::Ordinal;
use self::wait::At;
use super::send_state::SendState;

/// The fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message has been delivered at this member, so every surviving member has it, and
    /// delivers it too. This does not hold in an unordered subgroup, in which each member delivers
    /// what it has. If a member is lost, other members may lack the message, and it is not resent.
    Delivered,
    /// The message is in flight. If the view changes first, the message is resent in the next view,
    /// in order (VIE-7). In an unordered subgroup, it is resent only if it has never been sent.
    UnderWay,
    /// This member ended before the message was sent. No member has it, or ever will.
    NotSent,
    /// The message was sent, but this member ended before delivering it. The other members may or
    /// may not have delivered it.
    Unknown,
}

/// A marker for subgroups whose messages are kept only in memory. The last level that a receipt
/// reports is delivery.
#[derive(Clone, Copy, Debug)]
pub enum Volatile {}

/// A marker for subgroups whose members log the messages that they deliver. A receipt also reports
/// where a message is durable.
#[derive(Clone, Copy, Debug)]
pub enum Logged {}

/// Durability was requested in a subgroup that is not logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "subgroup {0} is not logged, so its messages do not become durable; set logged = true in the \
     group file of all members"
)]
pub struct NotLogged(pub SubgroupId);

/// The handle for a committed message. For each level, the handle can be queried, and waited on.
///
/// ```
/// # use std::time::Duration;
/// # use tramontane_runtime::group::{DurableMajority, Logged, Reached, Sender};
/// /// Replies only to an order that survives the loss of a minority of the disks.
/// fn reply(_: Reached<DurableMajority>) {}
///
/// async fn take_order(mut sender: Sender<Logged>) -> Result<(), Box<dyn std::error::Error>> {
///     let receipt = sender.send(b"an order", Duration::from_secs(1))?;
///     reply(receipt.durable_majority().await?);
///     Ok(())
/// }
/// ```
///
/// A level that the subgroup never reaches cannot be requested. This does not compile:
///
/// ```compile_fail,E0599
/// # use tramontane_runtime::group::{Receipt, Sender};
/// fn wait(receipt: &Receipt) {
///     let _ = receipt.durable_here();
/// }
/// ```
pub struct Receipt<K = Volatile> {
    state: Arc<SendState>,
    ordinal: Ordinal,
    kind: PhantomData<fn() -> K>,
}

impl<K> Receipt<K> {
    pub(crate) fn new(state: &Arc<SendState>, ordinal: Ordinal) -> Self {
        Self { state: Arc::clone(state), ordinal, kind: PhantomData }
    }

    /// Returns the message's number among this node's own messages.
    #[must_use]
    pub const fn ordinal(&self) -> Ordinal {
        self.ordinal
    }

    /// Returns the subgroup in which the message was sent.
    #[must_use]
    pub fn subgroup(&self) -> SubgroupId {
        self.state.subgroup
    }

    /// Returns the fate of the message.
    #[must_use]
    pub fn fate(&self) -> Fate {
        self.state.fate(self.ordinal)
    }

    /// Returns the handle for acceptance by this member. Every receipt has reached this level.
    pub fn accepted(&self) -> At<Accepted> {
        At::new(&self.state, self.ordinal)
    }

    /// Returns the handle for delivery at this member.
    pub fn delivered(&self) -> At<Delivered> {
        At::new(&self.state, self.ordinal)
    }
}

impl Receipt<Logged> {
    /// Returns the handle for durability at this member.
    pub fn durable_here(&self) -> At<DurableHere> {
        At::new(&self.state, self.ordinal)
    }

    /// Returns the handle for durability at a majority of the subgroup's members.
    pub fn durable_majority(&self) -> At<DurableMajority> {
        At::new(&self.state, self.ordinal)
    }

    /// Returns the handle for durability at all of the subgroup's members.
    pub fn durable_everywhere(&self) -> At<DurableEverywhere> {
        At::new(&self.state, self.ordinal)
    }
}

impl<K> Clone for Receipt<K> {
    fn clone(&self) -> Self {
        Self::new(&self.state, self.ordinal)
    }
}

impl<K> std::fmt::Debug for Receipt<K> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Receipt")
            .field("subgroup", &self.state.subgroup)
            .field("ordinal", &self.ordinal)
            .field("fate", &self.fate())
            .finish()
    }
}

impl SendState {
    /// Returns the fate of a message.
    pub(crate) fn fate(&self, ordinal: Ordinal) -> Fate {
        // Read in this order, so that a message delivered before the member ended counts as
        // delivered.
        let sent = self.sent.load(Ordering::Acquire);
        if ordinal.0 < self.counts.get(Count::Delivered) {
            Fate::Delivered
        } else if sent == u64::MAX {
            Fate::UnderWay
        } else if ordinal.0 < sent {
            Fate::Unknown
        } else {
            Fate::NotSent
        }
    }
}
