//! Groups whose membership changes: members fail, leave and join, and nothing is lost, doubled or reordered.
//!
//! [`start`] makes this process a member, of the first view or of a group that runs; the [`Running`] member hands
//! messages to a [`Replica`], and takes them from any number of [`Sender`]s, through all views. The protocol itself is the
//! core's; here is what it needs of a host: memory for each view, connections, state for those who join, threads.
//!
//! | file | subject |
//! |---|---|
//! | `description`, `digest`, `view`, `layout` | the group file; what is compared of it; a view; a view's layout, the same at all members |
//! | `start`, `looking` | how a process becomes a member; whether somebody runs already |
//! | `meeting`, `forming`, `past` | how initial nodes meet; whether they may form the group; what a node remembers of it |
//! | `joining`, `taking`, `taken` | the joiner: its attempts; what it takes over and from whom; whether that is all |
//! | `supply`, `said`, `admission` | the thread that supplies a joiner; what they say; by which view it is let in |
//! | `joiners`, `queue`, `leaving` | all whom a member supplies; what waits for one of them; when a member may leave them |
//! | `engine`, `asked`, `prepared`, `open_view` | what is stepped: from view to view; what others ask of it; the next view; one view |
//! | `outgoing` | senders that outlive views |
//! | `large` | large messages, whose bytes go by block multicast |
//! | `fabric`, `outside`, `door` | what carries writes; calls to others; visitors |
//! | `replica`, `running` | the application's side; the handle |
//! | `losses` | who was lost in a view that is still to come |
//! | `membership`, `request` | what stays the same; what other threads ask of the engine |
//! | `status`, `account`, `operator` | what is seen from outside |
//! | `doors`, `visits` | where the doors are, and what keys they take; an operator's side of them |

mod account;
mod admission;
mod asked;
mod clock;
mod description;
mod digest;
mod door;
mod doors;
mod engine;
mod fabric;
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
mod membership;
mod open_view;
mod operator;
mod outgoing;
mod outside;
mod past;
mod prepared;
mod queue;
mod replica;
mod request;
mod running;
mod said;
mod start;
mod status;
mod supply;
mod taken;
mod taking;
mod talking;
mod view;
mod visits;

pub use description::{Description, DescriptionError, NodeDescription, SubgroupDescription};
pub(crate) use doors::Doors;
pub use doors::DoorsError;
pub use fabric::NoFabric;
pub use forming::{Forming, NotFormed, Waiting};
pub use large::{LARGE_MAX, LargeUnsent, SendLargeError};
pub use layout::ViewLayout;
pub use outgoing::{Fate, Receipt, Run, Sender, Slot, Unsent};
pub use past::StateError;
pub use replica::{Message, Messages, Replica, ViewChanged};
pub use running::Running;
pub use start::{StartError, StartOptions, start};
pub use status::{Board, GroupStatus, SubgroupStatus};
pub use view::{FIRST_VIEW, View};
pub use visits::{AskError, Visits};
