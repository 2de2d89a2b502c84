//! The code of the fabric that can be reasoned about and tested without a device: credits, rings,
//! names, cards, updates, and the decision which end writes which block to which address.

pub(crate) mod blocks;
mod card;
mod counters;
mod doorbell;
pub(crate) mod epoch;
mod keys;
mod names;
mod send_queue;
mod under_way;
pub(crate) mod update;

pub(crate) use card::{Card, CardLink, LentMemory};
pub use counters::Counters;
pub(crate) use doorbell::{Doorbell, DueNotices, Heard, Notice};
pub(crate) use keys::{Announcer, EndedKeys, Holder};
pub(crate) use names::Name;
pub(crate) use send_queue::{Depths, SendQueue};
pub(crate) use under_way::{UnderWay, WholeGroups};
