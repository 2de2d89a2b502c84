//! Groups: what one member sends, every member delivers, in one order.
//!
//! A group is a [`Description`]: a file, or [built](Description::builder) by a program. Whether
//! members may come and go is a setting of it, [`Membership`]:
//!
//! | membership | members | a member that fails | cost |
//! |---|---|---|---|
//! | changing | fail, leave and join, from view to view; nothing is lost, doubled or reordered | is removed | heartbeats |
//! | fixed | all nodes, from beginning to end | ends the group: the others stop with [`Stopped::PeerLost`](crate::member::Stopped::PeerLost) | nothing when idle |
//!
//! All else is the same for both. A process becomes a member by [`start`], and a thread of its own
//! drives it: then the handle is [`Running`]. Or by [`start_stepped`], and its caller steps it:
//! then the handle is [`Stepped`], with [`step`](Running::step), [`idle`](Running::idle) and
//! [`sleep`](Running::sleep), which [`spawn`](Running::spawn) hands to a thread later. Messages go
//! to a [`Replica`], and come from any number of [`Sender`]s: slot by slot, in runs, or copied,
//! with a [`Receipt`] for each. Where a subgroup is logged, receipts tell also where a message is
//! durable ([`Sender::logged`]). [`leave`](Running::leave) and [`close`](Running::close) end
//! either.
//!
//! The protocol itself is the core's; here is what it needs of a host: memory for each view,
//! connections, state for joiners, threads.
//!
//! | file | subject |
//! |---|---|
//! | `description`, `description_error`, `builder`, `digest`, `view`, `layout` | the group file; what is wrong with one; the same from a program; what is compared of it; a view; a view's layout, the same at all members |
//! | `start`, `start_options`, `start_fixed`, `probe` | how a process becomes a member; with what; the same where membership is fixed; whether a member runs already |
//! | `meeting`, `forming`, `membership_record` | how initial nodes meet; whether they may form the group; what a node remembers of it |
//! | `running`, `replica`, `delivery_queue` | the handle; the application's side; delivery into a queue |
//! | `parts`, `fixed` | what both kinds of member have; a member whose membership is fixed |
//! | `changing`, `prepared`, `open_view` | a member whose membership changes, from view to view; the next view; one view |
//! | `joining`, `state_transfer`, `transfer_progress` | the joiner: its attempts; what it restores; whether that is all |
//! | `log_reader` | a member's own log, for its program |
//! | `restoring`, `log_transfer`, `supply_logs` | where what is restored goes; what its logs lack; how a member supplies that |
//! | `supply`, `join_messages`, `admission` | the thread that supplies a joiner; their messages; which view admits it |
//! | `early_losses` | nodes that were lost soon after their admission, and wait |
//! | `joiners`, `queue`, `leaving` | all joiners that a member supplies; what waits for one of them; when a member may leave them |
//! | `sender`, `send_state`, `subgroup_sending` | the handle that outlives views; what it shares with the engine; the engine's side |
//! | `receipt` | what stands for a message that was sent; the levels that it reaches |
//! | `durable` | the logs of subgroups that are logged, and what is durable of them |
//! | `large` | large messages, whose bytes go by block multicast |
//! | `fabric`, `peer_connector`, `control_service` | what carries writes; calls to peers; the control server |
//! | `slow_members` | members that hold the others back |
//! | `lost_peers` | which members were lost in a view that is still to come |
//! | `subgroup_change` | reserved subgroups, which views open and close |
//! | `participant`, `request` | what stays the same; what other threads ask of the member |
//! | `status`, `statistics`, `operator` | what is seen from outside; counts; an operator's requests |
//! | `clients` | clients from outside: their order, and the thread that serves them |
//! | `control_endpoints`, `operator_client` | addresses and key of the control servers; an operator's client |

mod admission;
mod builder;
mod changing;
mod clients;
mod control_endpoints;
mod control_service;
mod delivery_queue;
mod description;
mod description_error;
pub(crate) mod digest;
mod durable;
mod early_losses;
mod entering;
mod fabric;
mod fixed;
mod forming;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile_bytes;
mod join_messages;
mod joiners;
mod joining;
mod large;
mod layout;
mod leaving;
mod log_reader;
mod log_transfer;
mod lost_peers;
mod meeting;
mod membership_record;
mod noting;
mod open_view;
mod operator;
mod operator_client;
mod participant;
mod parts;
mod peer_connector;
mod prepared;
mod probe;
mod promising;
mod queue;
mod receipt;
mod replica;
mod request;
mod restart;
mod restoring;
mod running;
mod send_state;
mod sender;
mod slow_members;
mod start;
mod start_fixed;
mod start_options;
mod state_file;
mod state_transfer;
mod statistics;
mod status;
mod subgroup_change;
mod subgroup_sending;
mod supply;
mod supply_logs;
mod transfer_progress;
mod view;

pub use tramontane_control::client_messages::ClientId;

pub use builder::DescriptionBuilder;
pub use control_endpoints::ControlEndpoints;
pub use control_endpoints::ControlEndpointsError;
pub use delivery_queue::{QueueEnd, QueuedMessage, queue};
pub use description::{
    Description, MESSAGE_MAX_DEFAULT, Membership, NodeDescription, SubgroupDescription,
    WINDOW_DEFAULT,
};
pub use description_error::DescriptionError;
pub use durable::{DataError, LogNotice};
pub use forming::{Forming, NotFormed, Waiting};
pub use large::{LARGE_MAX, LargeBlocks, LargeUnsent, SendLargeError};
pub use layout::ViewLayout;
pub use log_reader::{LogPart, LogReader, LogReaderError, LoggedMessage};
pub use membership_record::{StateError, noted_log};
pub use operator_client::{OperatorClient, OperatorError};
pub use parts::Step;
pub use receipt::{
    Accepted, At, Delivered, DurableEverywhere, DurableHere, DurableMajority, Fate, Level, Logged,
    NotLogged, NotReached, Ordinal, Reached, Receipt, Volatile,
};
pub use replica::{Message, Messages, Replica, ViewChanged};
pub use running::{ByCaller, ByThread, Running, Stepped};
pub use sender::{Run, Sender, Slot};
pub use start::{start, start_stepped};
pub use start_fixed::{ConnectError, Connected, connect};
pub use start_options::{StartError, StartOptions};
pub use status::{
    ClientStatus, CutClient, DurableStatus, GroupStatus, MemberState, SharedStatus, SlowMember,
    SubgroupStatus,
};
pub use subgroup_change::ReservedSubgroups;
pub use subgroup_sending::Unsent;
pub use view::{FIRST_VIEW, View};
