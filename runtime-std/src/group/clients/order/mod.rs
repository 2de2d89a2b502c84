//! The order of clients' messages at every member, and the latest messages, which are kept for
//! readers.
//!
//! | file | subject |
//! |---|---|
//! | `subgroup_order` | the order in one subgroup |
//! | `table` | the known clients |
//! | `served` | the application, wrapped in the order |
//! | `feed` | reports of the member's thread to the clients' thread |
//! | `retained` | messages kept in memory |
//! | `notices` | notices between messages |
//! | `words` | records that are not messages |
//! | `record_places` | mapping from records to messages |
//! | `history` | messages delivered before |

pub(crate) mod feed;
pub(crate) mod history;
pub(crate) mod notices;
pub(crate) mod record_places;
pub(crate) mod retained;
pub(crate) mod served;
pub(crate) mod subgroup_order;
pub(crate) mod table;
pub(crate) mod words;
