//! Atomic multicast over remote memory: a message sent to a group arrives at every member, in the
//! same order at all of them.
//!
//! This is the only crate that a program has to depend on. It contains everything that programs
//! need from the [protocols](tramontane_core) and the [runtime](tramontane_runtime), under plain
//! names.
//!
//! A program runs one member of a group, and the group survives the failure of members. [`start`]
//! makes the program a member. Its application is an [`Application`], which receives the same
//! messages in the same order as all others, and provides its state to a joining member. Messages
//! are sent with a [`Sender`]:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//!
//! use tramontane::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One node, so that this runs by itself: 8 slots per sender, messages of up to 64 bytes.
//! let name = format!("doc-{}", std::process::id());
//! let group = Description::builder(&name).nodes(1).window(8).message_max(64).build()?;
//! let delivered = Arc::new(Mutex::new(Vec::new()));
//! let kept = Arc::clone(&delivered);
//! // A closure is an application without state.
//! let application = move |messages: &mut Messages<'_, '_>| {
//!     kept.lock().unwrap().extend(messages.map(|message| message.payload.to_vec()));
//! };
//! let running = start(group, StartOptions::new(0), application)?;
//! let mut sender = running.sender().ok_or("every node sends")?;
//! sender.send(b"hello", Duration::from_secs(1))?;
//! running.leave(Duration::from_secs(10))?;
//! assert_eq!(*delivered.lock().unwrap(), [b"hello"]);
//! # Ok(())
//! # }
//! ```
//!
//! If all members stay to the end, `membership = "fixed"` in the group file, or
//! [`DescriptionBuilder::fixed`], saves heartbeats and views: the group then ends when the first
//! member leaves or fails. A program with a loop of its own can step its member in that loop:
//! [`start_stepped`].
//!
//! | module | what it is for |
//! |---|---|
//! | [`group`] | groups whose members may fail, leave and join: all of it, what is named here included |
//! | [`blocks`] | large objects to many, at nearly the price of one copy |
//! | [`typed`] | state machines whose commands are answered, on top of groups |
//! | [`metrics`] | the group's and the program's own metrics for Prometheus |
//! | [`shards`] | groups of replicas in a tree, and one order for messages to any set of them |

#[cfg(doctest)]
mod guide;

#[doc(inline)]
pub use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
#[doc(inline)]
pub use tramontane_core::smc::ReserveError;
pub use tramontane_runtime::blocks;
#[doc(inline)]
pub use tramontane_runtime::carrier::Carrier;
#[doc(inline)]
pub use tramontane_runtime::group::{
    self, Accepted, Application, ClientId, DataError, Delivered, Description, DescriptionBuilder,
    DescriptionError, DurableEverywhere, DurableHere, DurableMajority, Forming, GroupStatus, Level,
    LogPart, LogReader, LogReaderError, Logged, LoggedMessage, Membership, Message, Messages,
    NodeDescription, NotFormed, NotLogged, NotReached, OperatorClient, OperatorError, Ordinal,
    Reached, Receipt, ReservedSubgroups, Run, Running, Sender, SharedStatus, Slot, SlotFree,
    StartError, StartOptions, Step, Stepped, SubgroupDescription, SubgroupStatus, Unsent, View,
    ViewChanged, Volatile, Waiting, start, start_stepped,
};
#[doc(inline)]
pub use tramontane_runtime::member::{SendError, Settings, Stopped};
#[doc(inline)]
pub use tramontane_runtime::rdma::DeviceOptions;
pub use tramontane_runtime::{metrics, shards, toml_text};

#[cfg(feature = "typed")]
pub use serde;

#[cfg(feature = "typed")]
pub mod typed;
#[cfg(feature = "typed")]
#[doc(inline)]
pub use typed::{
    NoAnswers, NotAnswered, Proposal, Replicated, ShardClient, ShardReplica, StateMachine,
};

/// The folder in which groups over shared memory meet.
pub mod shared_memory {
    #[doc(inline)]
    pub use tramontane_runtime::shared_memory::{GroupName, Root};
}

/// The items that most programs need.
pub mod prelude {
    pub use crate::{
        Application, Description, Message, Messages, Receipt, Running, Sender, StartOptions, View,
        start,
    };
}
