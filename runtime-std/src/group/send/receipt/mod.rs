//! Receipts: the handle for a sent message, and the queries on it.
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
    /// The message was delivered here, so every surviving member has it, and delivers it too. This
    /// does not hold in a subgroup without order (`unordered`): there each member delivers what it
    /// has. If a member is lost, others may lack the message, and it is not resent.
    Delivered,
    /// The message is in flight. If the view changes first, it is resent in the next view, in order
    /// (VIE-7); in a subgroup without order only if it was never sent.
    UnderWay,
    /// This member ended before the message was sent: no member has it, or ever will.
    NotSent,
    /// The message was sent, and this member ended before it was delivered here: the others may or
    /// may not have delivered it.
    Unknown,
}

/// The messages of a subgroup are kept in memory: a receipt reports no more than delivery.
#[derive(Clone, Copy, Debug)]
pub enum Volatile {}

/// The members of a subgroup log what they deliver: a receipt also reports where it is durable.
#[derive(Clone, Copy, Debug)]
pub enum Logged {}

/// Durability was requested in a subgroup that is not logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "subgroup {0} is not logged, so its messages do not become durable; set logged = true in the \
     group file at all members"
)]
pub struct NotLogged(pub SubgroupId);

/// The handle for a committed message. It can be queried, and waited for, at each level.
///
/// ```
/// # use std::time::Duration;
/// # use tramontane_runtime::group::{DurableMajority, Logged, Reached, Sender};
/// /// Only what survives the loss of a minority of disks is worth a reply.
/// fn reply(_: Reached<DurableMajority>) {}
///
/// async fn take_order(mut sender: Sender<Logged>) -> Result<(), Box<dyn std::error::Error>> {
///     let receipt = sender.send(b"an order", Duration::from_secs(1))?;
///     reply(receipt.durable_majority().await?);
///     Ok(())
/// }
/// ```
///
/// A level that the subgroup never reaches cannot be requested:
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

    /// Returns the number of the message among this node's own.
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

    /// Returns the level that every receipt has reached: this member has accepted the message.
    pub fn accepted(&self) -> At<Accepted> {
        At::new(&self.state, self.ordinal)
    }

    /// Returns the level of delivery here.
    pub fn delivered(&self) -> At<Delivered> {
        At::new(&self.state, self.ordinal)
    }
}

impl Receipt<Logged> {
    /// Returns the level of durability at this member.
    pub fn durable_here(&self) -> At<DurableHere> {
        At::new(&self.state, self.ordinal)
    }

    /// Returns the level of durability at a majority of the subgroup's members.
    pub fn durable_majority(&self) -> At<DurableMajority> {
        At::new(&self.state, self.ordinal)
    }

    /// Returns the level of durability at all of the subgroup's members.
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
