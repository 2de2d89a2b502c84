//! Code that the programs share: the start and end of a program, options and tables for people, and
//! groups whose members are processes of this machine.
//!
//! | module | subject |
//! |---|---|
//! | [`program`] | a program's start and end |
//! | [`exit`], `failures` | exit statuses; the conversion of each layer's errors |
//! | [`limits`], `out_of_memory` | system limits that would end the program without a message |
//! | [`options`], [`network`] | options shared by several commands; the addresses of members on several hosts |
//! | [`group_file`], [`client_options`] | the group file, and a client's options for finding members |
//! | [`shard_trees`] | the paper's trees of shards |
//! | [`output`], [`lines`], [`record`] | results, deliveries, lines of text and JSON |
//! | [`print`](mod@print), [`table`] | a report as JSON or as text; tables for people |
//! | [`waiting_notice`] | a notice of other users' folders, for a member that waits |
//! | [`clock`], [`mapped`] | the clocks of the machine; a file as shared memory |
//! | [`crew`] | the worker processes of one run: their tasks, orders, reports and ends |
//! | [`processes`] | processes of this same program, which do not outlive their parent |
//! | [`interrupt`] | SIGINT and SIGTERM as flags |
//! | [`free_addresses`](mod@free_addresses) | addresses for processes that listen themselves |
//! | [`group`] | the place where the members of such a group meet |

pub mod client_options;
pub mod clock;
pub mod crew;
pub mod exit;
mod failures;
pub mod free_addresses;
pub mod group;
pub mod group_file;
pub mod interrupt;
pub mod limits;
pub mod lines;
pub mod mapped;
pub mod network;
pub mod options;
mod out_of_memory;
pub mod output;
pub mod print;
pub mod processes;
pub mod program;
pub mod record;
pub mod shard_trees;
pub mod table;
pub mod until_interrupted;
pub mod waiting_notice;
