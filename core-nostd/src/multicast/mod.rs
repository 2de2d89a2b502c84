//! Atomic multicast of small messages: order arithmetic, null rounds, and the three predicates of
//! the paper (Spindle II-D, III), in the order in which a step runs them.
//!
//! | file | what it holds |
//! |---|---|
//! | `order` | rounds and places (ORD) |
//! | `state` | what a node remembers of its subgroups, senders and members |
//! | `switches` | which of the stages batch, and what else is on |
//! | `application` | what messages are handed to |
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
//! The batching of each stage, nulls and late posting can be switched off: the paper's baseline is
//! a configuration of this code.

#[cfg(all(feature = "durable", feature = "views"))]
mod ahead;
mod application;
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
mod switches;
mod watched;

pub use application::{Application, EachMessage};
pub use batch::{Batch, Message};
pub use order::Order;
pub use state::{Link, MemberState, SenderState, SubgroupState};
pub use switches::Switches;
pub use watched::{Impossible, Misbehaved};

pub(crate) use post::{PostReport, Poster, Shown};
pub(crate) use receive::ReceiveError;
pub(crate) use state::{Control, OwnSender, Span, Work, peer_value};
pub(crate) use watched::Unreadable;
