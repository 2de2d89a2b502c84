//! Receipts: what stands for a message that was sent, and what can be asked of it.
//!
//! | file | subject |
//! |---|---|
//! | `level` | the levels as types, and what shows that one is reached |
//! | `wait` | asking, waiting and awaiting |
//! | `counts` | how far own messages got, shared with the thread that drives the member |
//! | `durable_marks` | which own messages become durable with which count of the log |

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

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was delivered here; so every member that goes on has it, and delivers it too. Not so in a
    /// subgroup without order (`unordered`): there each member delivers what it has, so that others
    /// may lack it if a member is lost, and it is not sent again.
    Delivered,
    /// It is under way. If the view changes first it is sent again in the next one, in its order
    /// (VIE-7); without an order that is done only for what was not sent at all.
    UnderWay,
    /// This member ended before it was sent: nobody has it, and nobody will.
    NotSent,
    /// It was sent, and this member ended before it knew more: the others may have delivered it, or
    /// may not.
    Unknown,
}

/// The messages of a subgroup are kept in memory: a receipt tells no more than delivery.
#[derive(Clone, Copy, Debug)]
pub enum Volatile {}

/// The members of a subgroup log what they deliver: a receipt tells also where it is durable.
#[derive(Clone, Copy, Debug)]
pub enum Logged {}

/// Durability was asked for in a subgroup that is not logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "subgroup {0} is not logged, so nothing becomes durable in it; set logged = true in the group \
     file, at all members"
)]
pub struct NotLogged(pub SubgroupId);

/// Stands for a message that was committed. Asks after it, and waits for it, at each level.
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
/// A level that the subgroup never reaches cannot be asked for:
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

    /// Which message of this node it is.
    #[must_use]
    pub const fn ordinal(&self) -> Ordinal {
        self.ordinal
    }

    /// The subgroup that it was sent in.
    #[must_use]
    pub fn subgroup(&self) -> SubgroupId {
        self.state.subgroup
    }

    /// What became of it.
    #[must_use]
    pub fn fate(&self) -> Fate {
        self.state.fate(self.ordinal)
    }

    /// It is this member's to send: reached from the beginning.
    pub fn accepted(&self) -> At<Accepted> {
        At::new(&self.state, self.ordinal)
    }

    /// It is delivered here.
    pub fn delivered(&self) -> At<Delivered> {
        At::new(&self.state, self.ordinal)
    }
}

impl Receipt<Logged> {
    /// It is durable with this member.
    pub fn durable_here(&self) -> At<DurableHere> {
        At::new(&self.state, self.ordinal)
    }

    /// It is durable with a majority of the subgroup's members.
    pub fn durable_majority(&self) -> At<DurableMajority> {
        At::new(&self.state, self.ordinal)
    }

    /// It is durable with all of them.
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
    /// What became of a message.
    pub(crate) fn fate(&self, ordinal: Ordinal) -> Fate {
        // In this order: what was delivered before the member ended counts as delivered.
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
