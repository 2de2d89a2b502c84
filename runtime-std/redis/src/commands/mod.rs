//! The execution of commands: each changes the keys, and adds its reply.

mod arguments;
mod counters;
mod expiry;
mod hashes;
mod keys;
mod lists;
mod options;
mod scans;
mod sets;
mod single;
mod sorted_ranges;
mod sorted_sets;
mod strings;
mod transactions;

use arguments::Arguments;

use crate::keyspace::Keyspace;
use crate::protocol::Reply;
use crate::table::Verb;

/// Executes a command, and adds its reply. A refused command changes nothing.
pub(crate) fn execute(keys: &mut Keyspace, verb: Verb, arguments: &Arguments<'_>, to: &mut Reply) {
    let outcome = match verb {
        Verb::Exec => transactions::exec(keys, arguments, to),
        _ => single::execute_single(keys, verb, arguments, to),
    };
    if let Err(refusal) = outcome {
        to.error(&refusal.0);
    }
}
