//! Atomic multicast of small messages: order arithmetic, null rounds, and the three predicates of
//! the paper (Spindle II-D, III), in the order in which a step runs them.
//!
//! | file | contents |
//! |---|---|
//! | `order` | rounds and sequence positions (ORD) |
//! | `state` | a node's state of its subgroups, senders and members |
//! | `subgroup_set` | a set of subgroups in one word |
//! | `switches` | the optimisations that can be switched off, such as the batching of each stage |
//! | `application` | the receiver of messages |
//! | `watched` | a count of a peer, which must grow and be possible |
//! | `look` | interpretation of a sender's next slot, including values that no correct sender publishes |
//! | `reach` | bounds on the progress of senders |
//! | `rest` | the cells that can bring work to a subgroup without pending work (BAT-5) |
//! | `send` | takes ready slots, assigns rounds, publishes (BAT-1) |
//! | `receive` | takes new messages of every sender, publishes the received frontier |
//! | `nulls` | the rounds that a sender owes, and how it uses them up (NUL) |
//! | `deliver` | stability, the upcall, the delivered frontier, and the freeing of slots |
//! | `batch` | the argument of an upcall: messages lent from the rings, in order |
//! | `ahead` | messages that a log must have before the view is sealed (DUR-6) |
//! | `durable` | the durable counts of the members of a logged subgroup (DUR-1) |
//! | `links` | the walk over the links of the subgroups that changed |
//! | `relay` | the messages that a member passes on, and the slots that each link then carries (REL-1) |
//! | `post` | the data that each peer still lacks, as lists of writes |
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
mod links;
mod look;
mod nulls;
mod order;
mod post;
mod reach;
mod receive;
#[cfg(feature = "relays")]
mod relay;
mod rest;
mod send;
mod state;
mod subgroup_set;
mod switches;
mod watched;

pub use application::{Application, EachMessage};
pub use batch::{Batch, Message};
pub use order::Order;
pub use state::{Link, MemberState, SenderState, SubgroupState};
pub use switches::Switches;
pub use watched::{Impossible, Misbehaved};

#[cfg(feature = "durable")]
pub(crate) use durable::see_durable;
pub(crate) use post::{PostReport, Poster, Shown};
pub(crate) use receive::ReceiveError;
#[cfg(feature = "relays")]
pub(crate) use relay::Relay;
pub(crate) use rest::Rest;
pub(crate) use state::{Control, OwnSender, Span, Work, peer_value};
pub(crate) use subgroup_set::SubgroupSet;
pub(crate) use watched::Unreadable;
