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
//! with a [`Receipt`] for each. [`leave`](Running::leave) and [`close`](Running::close) end either.
//!
//! The protocol itself is the core's; here is what it needs of a host: memory for each view,
//! connections, state for those who join, threads.
//!
//! | file | subject |
//! |---|---|
//! | `description`, `builder`, `digest`, `view`, `layout` | the group file; the same from a program; what is compared of it; a view; a view's layout, the same at all members |
//! | `start`, `start_fixed`, `looking` | how a process becomes a member; the same where membership is fixed; whether a member runs already |
//! | `meeting`, `forming`, `past` | how initial nodes meet; whether they may form the group; what a node remembers of it |
//! | `running`, `replica`, `delivery_queue` | the handle; the application's side; delivery into a queue |
//! | `parts`, `fixed` | what both kinds of member have; a member whose membership is fixed |
//! | `changing`, `asked`, `prepared`, `open_view` | a member whose membership changes, from view to view; what others ask of it; the next view; one view |
//! | `joining`, `taking`, `taken` | the joiner: its attempts; what it takes over and from whom; whether that is all |
//! | `supply`, `said`, `admission` | the thread that supplies a joiner; what they say; by which view it is let in |
//! | `joiners`, `queue`, `leaving` | all whom a member supplies; what waits for one of them; when a member may leave them |
//! | `outgoing` | senders that outlive views |
//! | `large` | large messages, whose bytes go by block multicast |
//! | `fabric`, `outside`, `door` | what carries writes; calls to others; visitors |
//! | `losses` | which members were lost in a view that is still to come |
//! | `participant`, `request` | what stays the same; what other threads ask of the member |
//! | `status`, `account`, `operator` | what is seen from outside |
//! | `doors`, `visits` | where the doors are, and what keys they take; an operator's side of them |

mod account;
mod admission;
mod asked;
mod builder;
mod changing;
mod delivery_queue;
mod description;
mod digest;
mod door;
mod doors;
mod fabric;
mod fixed;
mod forming;
#[cfg(any(test, fuzzing))]
pub(crate) mod garbage;
mod joiners;
mod joining;
mod large;
mod layout;
mod leaving;
mod looking;
mod losses;
mod meeting;
mod open_view;
mod operator;
mod outgoing;
mod outside;
mod participant;
mod parts;
mod past;
mod prepared;
mod queue;
mod replica;
mod request;
mod running;
mod said;
mod start;
mod start_fixed;
mod status;
mod supply;
mod taken;
mod taking;
mod talking;
mod view;
mod visits;

pub use builder::DescriptionBuilder;
pub use delivery_queue::{QueueEnd, QueuedMessage, queue};
pub use description::{
    Description, DescriptionError, MESSAGE_MAX_DEFAULT, Membership, NodeDescription,
    SubgroupDescription, WINDOW_DEFAULT,
};
pub use doors::Doors;
pub use doors::DoorsError;
pub use fabric::NoFabric;
pub use forming::{Forming, NotFormed, Waiting};
pub use large::{LARGE_MAX, LargeBlocks, LargeUnsent, SendLargeError};
pub use layout::ViewLayout;
pub use outgoing::{Fate, Receipt, Run, Sender, Slot, Unsent};
pub use parts::Step;
pub use past::StateError;
pub use replica::{Message, Messages, Replica, ViewChanged};
pub use running::{ByCaller, ByThread, Running, Stepped};
pub use start::{StartError, StartOptions, start, start_stepped};
pub use start_fixed::{ConnectError, Connected, connect};
pub use status::{Board, GroupStatus, SubgroupStatus};
pub use view::{FIRST_VIEW, View};
pub use visits::{AskError, Visits};
