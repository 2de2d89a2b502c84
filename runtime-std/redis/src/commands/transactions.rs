//! Transactions. The connection collects the requests of a transaction, and sends them together.
//!
//! EXEC has two arguments: the watched keys, each with the number of its last change when WATCH was
//! executed, and the requests. All members see whether a watched key has changed since then.

use super::arguments::{Arguments, Executed};
use super::single::execute_single;
use crate::batch::RequestsReader;
use crate::keyspace::Keyspace;
use crate::paced::{SpentTime, TRANSACTION_TIME};
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::table::{CommandKind, Verb};

pub(super) fn exec(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[watched, requests] = arguments else { return Err(CommandRefusal::MALFORMED) };
    let mut watched = RequestsReader::new(watched);
    while !watched.is_at_end() {
        let key = watched.argument()?;
        let version = watched.argument()?.try_into().map_err(|_| CommandRefusal::MALFORMED)?;
        if keys.version(key) != u64::from_le_bytes(version) {
            to.nil_array();
            return Ok(());
        }
    }
    let count = {
        let (mut requests, mut nested, mut count) = (RequestsReader::new(requests), vec![], 0);
        while requests.next(&mut nested)?.is_some() {
            count += 1;
        }
        count
    };
    to.array(count);
    let (mut requests, mut nested) = (RequestsReader::new(requests), Vec::new());
    let mut spent = SpentTime::default();
    while let Some(number) = requests.next(&mut nested)? {
        let verb = Verb::of(number).ok_or(CommandRefusal::MALFORMED)?;
        // Only changes matter if nobody reads the replies.
        if verb.kind() != CommandKind::Write && !to.is_kept() {
            continue;
        }
        let is_slow_read = verb.is_slow() && verb.kind() == CommandKind::Read;
        if is_slow_read && !spent.is_below(TRANSACTION_TIME) {
            to.error(&CommandRefusal::TRANSACTION_TIME.0);
            continue;
        }
        if verb.kind() == CommandKind::Local {
            // The connection has replaced the request by its reply.
            nested.iter().for_each(|reply| to.raw(reply));
            continue;
        }
        if let Err(refusal) = execute_single(keys, verb, &nested, to) {
            to.error(&refusal.0);
        }
    }
    Ok(())
}
