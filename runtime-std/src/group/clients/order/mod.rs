//! The order of clients' messages at every member, and the part of it that is kept for readers.
//!
//! | file | subject |
//! |---|---|
//! | `subgroup_order` | the order in one subgroup |
//! | `table` | which clients are known |
//! | `served` | the application, with the order before it |
//! | `feed` | what the member's thread tells the clients' thread |
//! | `retained` | messages that are kept |
//! | `notices` | what is told between messages |
//! | `words` | which records are no messages |
//! | `record_places` | places of records |
//! | `history` | what was delivered before |

pub(crate) mod feed;
pub(crate) mod history;
pub(crate) mod notices;
pub(crate) mod record_places;
pub(crate) mod retained;
pub(crate) mod served;
pub(crate) mod subgroup_order;
pub(crate) mod table;
pub(crate) mod words;
