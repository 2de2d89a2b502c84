//! Atomic multicast of small messages: order arithmetic, null rounds, and the three predicates of
//! the paper (Spindle II-D, III), in the order in which a step runs them.
//!
//! | file | what it holds |
//! |---|---|
//! | `order` | rounds and places (ORD) |
//! | `state` | what a node remembers of its subgroups, senders and members |
//! | `watched` | a count of a peer: it must grow, and be possible |
//! | `look` | what a sender's next slot tells, and what no correct one says |
//! | `reach` | how far senders can be |
//! | `send` | takes ready slots, binds rounds, publishes (BAT-1) |
//! | `receive` | takes new messages of every sender, publishes the received frontier |
//! | `nulls` | which rounds a sender owes, and how it uses them up (NUL) |
//! | `deliver` | stability, the upcall, the delivered frontier, and slots that come free |
//! | `batch` | what an upcall is handed: messages lent out of the rings, in order |
//! | `ahead` | what a log must have before the view is sealed (DUR-6) |
//! | `durable` | what the members of a logged subgroup have made durable (DUR-1) |
//! | `post` | which ranges each peer still lacks, as lists of writes |
//!
//! Each stage's batching can be switched off, and nulls and late posting too: the paper's baseline
//! is a configuration of this code.

#[cfg(all(feature = "durable", feature = "views"))]
mod ahead;
mod batch;
mod deliver;
#[cfg(feature = "durable")]
mod durable;
mod look;
mod nulls;
mod order;
mod post;
mod reach;
mod receive;
mod send;
mod state;
mod watched;

pub use batch::{Batch, EachMessage, Message};
pub use order::Order;
pub use state::{Link, MemberState, SenderState, SubgroupState};
pub use watched::Impossible;

use crate::ids::Time;

pub(crate) use post::{PostReport, Poster, Shown};
pub(crate) use receive::ReceiveError;
pub(crate) use state::{Control, OwnSender, Span, Work, peer_value};
pub(crate) use watched::{Refused, Unreadable, Watched};

bitflags::bitflags! {
    /// What of Spindle is on. All of it is the default; none of it is the paper's baseline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Switches: u8 {
        /// Send takes all ready messages; without it, one a step.
        const SEND_BATCHING = 1;
        /// Receive takes all new messages; without it, one a step in all, each with its
        /// acknowledgement.
        const RECEIVE_BATCHING = 1 << 1;
        /// Delivery takes all stable messages; without it, one a step.
        const DELIVERY_BATCHING = 1 << 2;
        /// Senders that lag use up their rounds (Spindle III-B).
        const NULLS = 1 << 3;
        /// Posts wait for the end of the step; without it, each stage posts its own (Spindle
        /// III-C).
        const LATE_POSTING = 1 << 4;
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Switches {
    fn format(&self, out: defmt::Formatter<'_>) {
        defmt::write!(out, "Switches({=u8:b})", self.bits());
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self::all()
    }
}

/// A sender published something that no correct member can publish. The group must go on without
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Misbehaved(pub crate::ids::Rank);

/// What receives messages: the application's end of a node.
///
/// Closures over a batch are applications; wrap one over a message in [`EachMessage`].
pub trait Application {
    /// Takes everything that became deliverable in one subgroup, in order (DEL-1). Payloads are
    /// lent until the return; no slot of the batch is reused before. What is not taken from the
    /// batch is skipped.
    fn deliver(&mut self, batch: &mut Batch<'_>);

    /// Shows what was received and not delivered of a logged subgroup, up to the place where the
    /// view is about to be sealed, so that it can be made durable first (DUR-6). It counts as
    /// neither delivered nor ordered yet: [`Application::deliver`] comes later, or it never comes
    /// and another batch is shown, perhaps a shorter one, even one of nothing. Behind what was
    /// delivered, a log holds the messages of the last batch that was shown and no others. Payloads
    /// are lent until the return.
    #[cfg(feature = "durable")]
    fn append(&mut self, _batch: &mut Batch<'_>) {}

    /// The time now, asked for after each upcall of a node whose membership may change: if the
    /// upcall was long, the node posts a heartbeat before the next upcall begins (VIE-2). `step` is
    /// the time that the step was given, and the answer where all upcalls of a step take less than
    /// a heartbeat together.
    fn now(&mut self, step: Time) -> Time {
        step
    }
}

impl<F: FnMut(&mut Batch<'_>)> Application for F {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        self(batch);
    }
}
