//! Transactions. The connection collects the requests of a transaction, and sends them together.
//!
//! EXEC has two arguments: the watched keys, each with the number of its last change when WATCH was
//! executed, and the requests. All members see whether a watched key has changed since then.

use super::{Arguments, Outcome, execute_single};
use crate::batch::RequestsReader;
use crate::keyspace::Keyspace;
use crate::protocol::Reply;
use crate::refusal::Refusal;
use crate::table::{Kind, Verb};

/// Replies the versions of keys, eight bytes each, for the connection.
pub(super) fn watch(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    arguments.iter().for_each(|key| to.raw(&keys.version(key).to_le_bytes()));
    Ok(())
}

pub(super) fn exec(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    let &[watched, requests] = arguments else { return Err(Refusal::MALFORMED) };
    let mut watched = RequestsReader::new(watched);
    while !watched.is_at_end() {
        let key = watched.argument()?;
        let version = watched.argument()?.try_into().map_err(|_| Refusal::MALFORMED)?;
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
    while let Some(number) = requests.next(&mut nested)? {
        let verb = Verb::of(number).ok_or(Refusal::MALFORMED)?;
        // Where nobody reads the replies, only changes matter.
        if verb.kind() != Kind::Write && !to.is_kept() {
            continue;
        }
        if let Err(refusal) = execute_single(keys, verb, &nested, to) {
            to.error(&refusal.0);
        }
    }
    Ok(())
}
