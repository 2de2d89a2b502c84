//! Groups, in which every member delivers the messages of all members, in one order.
//!
//! A group is defined by a [`Description`], which comes from a file or is
//! [built](Description::builder) by a program. One of its settings, [`Membership`], decides whether
//! members may join and leave:
//!
//! | membership | members | a member that fails | cost |
//! |---|---|---|---|
//! | changing | fail, leave and join, from view to view; nothing is lost, doubled or reordered | is removed | heartbeats |
//! | fixed | all nodes, from beginning to end | ends the group: the others stop with [`Stopped::PeerLost`](crate::member::Stopped::PeerLost) | nothing when idle |
//!
//! Everything else is the same for both. A process becomes a member with [`start`], which drives
//! the member in its own thread and returns the handle [`Running`]. Alternatively, it becomes a
//! member with [`start_stepped`], and its caller steps the member; the handle is [`Stepped`], with
//! [`step`](Running::step), [`idle`](Running::idle) and [`sleep`](Running::sleep), and
//! [`spawn`](Running::spawn) can later pass the member to a thread. Messages are delivered to an
//! [`Application`], and come from any number of [`Sender`]s: slot by slot, in runs, or copied, each
//! with a [`Receipt`]. In a logged subgroup, receipts also report where a message is durable
//! ([`Sender::logged`]). [`leave`](Running::leave) and [`close`](Running::close) end either kind of
//! member.
//!
//! The core contains the protocol itself. This module contains the host's part: memory for each
//! view, connections, state for joining nodes, and threads.
//!
//! | folder or file | subject |
//! |---|---|
//! | `description` | the description of a group, and everything derived from it: views, layouts, digests |
//! | `delivery` | the application's side |
//! | `send` | sending, and receipts for sent messages |
//! | `large` | large messages, whose bytes travel by block multicast |
//! | `durable` | the logs of logged subgroups, and the durable counts |
//! | `state` | a node's record of its membership, on disk |
//! | `engine` | a running member, stepped by its polling thread |
//! | `enter` | how a process becomes a member |
//! | `restart` | how all nodes that have the group's logs continue from them |
//! | `join`, `supply` | the joiner; the member that supplies it |
//! | `control` | the control server, and calls to peers |
//! | `status` | the status of a member, and an operator's requests |
//! | `clients` | external clients: their order, and the thread that serves them |
//! | `running` | the handle |
//!
//! Files in this crate import each item from the module that declares it. This module re-exports
//! the items that programs need.

pub(crate) mod clients;
pub(crate) mod control;
pub(crate) mod delivery;
pub(crate) mod description;
pub(crate) mod durable;
pub(crate) mod engine;
pub(crate) mod enter;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile_bytes;
pub(crate) mod join;
pub(crate) mod large;
mod restart;
mod running;
pub(crate) mod send;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod supply;

pub use tramontane_control::client_messages::ClientId;

pub use self::running::{ByCaller, ByThread, Running, Stepped};
pub use crate::group::control::control_endpoints::ControlEndpoints;
pub use crate::group::control::control_endpoints::ControlEndpointsError;
pub use crate::group::delivery::application::Application;
pub use crate::group::delivery::delivery_queue::{QueueEnd, QueuedMessage, queue};
pub use crate::group::delivery::message::{Message, ViewChanged};
pub use crate::group::delivery::messages::Messages;
pub use crate::group::description::builder::DescriptionBuilder;
pub use crate::group::description::error::DescriptionError;
pub use crate::group::description::layout::ViewLayout;
pub use crate::group::description::terms::{
    Description, MESSAGE_MAX_DEFAULT, Membership, NodeDescription, SubgroupDescription,
    WINDOW_DEFAULT,
};
pub use crate::group::description::view::{FIRST_VIEW, View};
pub use crate::group::durable::data_error::DataError;
pub use crate::group::durable::log_notice::LogNotice;
pub use crate::group::durable::log_reader::{LogPart, LogReader, LogReaderError, LoggedMessage};
pub use crate::group::engine::parts::Step;
pub use crate::group::engine::reserved_subgroups::ReservedSubgroups;
pub use crate::group::enter::forming::{Forming, NotFormed, Waiting};
pub use crate::group::enter::start::{start, start_stepped};
pub use crate::group::enter::start_fixed::{ConnectError, Connected, connect};
pub use crate::group::enter::start_options::{StartError, StartOptions};
pub use crate::group::large::limits::{LARGE_MAX, LargeBlocks};
pub use crate::group::large::sending::{LargeUnsent, SendLargeError};
pub use crate::group::send::receipt::level::{Level, Reached};
pub use crate::group::send::receipt::ordinal::Ordinal;
pub use crate::group::send::receipt::wait::{At, NotReached};
pub use crate::group::send::receipt::{Fate, Logged, NotLogged, Receipt, Volatile};
pub use crate::group::send::sender::{Run, Sender, Slot};
pub use crate::group::send::slot_free::SlotFree;
pub use crate::group::send::subgroup_sending::Unsent;
pub use crate::group::state::folder::{StateError, noted_log};
pub use crate::group::status::group_status::{
    ClientStatus, CutClient, DurableStatus, GroupStatus, MemberState, SharedStatus, SlowMember,
    SubgroupStatus,
};
pub use crate::group::status::operator_client::{OperatorClient, OperatorError};
pub use crate::member::give_up;
pub use crate::poll::MemberSteps;
pub use send::receipt::level::{
    Accepted, Delivered, DurableEverywhere, DurableHere, DurableMajority,
};
