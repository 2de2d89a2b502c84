//! What the program and the benches share: groups whose members are processes of this machine, how
//! those processes are started and ended, and options and tables for people.
//!
//! | module | subject |
//! |---|---|
//! | [`clock`] | the clocks of the machine |
//! | [`crew`] | the worker processes of one run: their tasks, orders, reports and ends |
//! | [`processes`] | processes of this same program, none of which outlives its parent |
//! | [`interrupt`] | SIGINT and SIGTERM as flags |
//! | [`group`] | where the members of such a group meet |
//! | [`mapped`] | a file as shared memory |
//! | [`options`] | options that several commands have |
//! | [`print`](mod@print) | a report as JSON or as text |
//! | [`table`] | tables for people |

pub mod clock;
pub mod crew;
pub mod group;
pub mod interrupt;
pub mod mapped;
pub mod options;
pub mod print;
pub mod processes;
pub mod table;
