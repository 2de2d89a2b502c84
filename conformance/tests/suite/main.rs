//! Tests of the checker and the command line. The tests that drive adapters are in `tests/driven`.

mod cli;
mod forgetting;
mod format;
mod garbage;
#[path = "../../examples/good_history/mod.rs"]
mod good_history;
mod histories;
mod judges;
mod naive;
mod random_histories;
mod samples;
mod shards;
mod two_statements;
