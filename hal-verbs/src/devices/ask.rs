//! The query whether a device writes the data of one request in order.
//!
//! Drivers answer only for a queue pair that is ready to send. Therefore, a queue pair is connected
//! to itself for the query.

use std::io;

use super::{Choice, DataInOrder};
use crate::adapter::{
    Access, CompletionQueue, Context, ProtectionDomain, QueuePair, QueuePairLimits, Route,
    SendTimes,
};

/// Returns the device's answer for writes into a queue pair on the chosen port and address.
pub(crate) fn data_in_order(context: &Context, choice: &Choice) -> DataInOrder {
    let answer = connected_to_itself(context, choice).map(|pair| pair.data_in_order());
    answer.unwrap_or_else(|error| {
        tracing::debug!(device = choice.name, %error, "cannot ask the device about the order of \
             data");
        DataInOrder::NotKnown
    })
}

fn connected_to_itself(context: &Context, choice: &Choice) -> io::Result<QueuePair> {
    const TIMES: SendTimes =
        SendTimes { timeout_exponent: 14, retries: 6, first_packet: 0, reads_max: 1 };
    let domain = ProtectionDomain::new(context)?;
    let completions = CompletionQueue::new(context, 2)?;
    let limits = QueuePairLimits { sends_max: 1, receives_max: 1, inline_bytes_max: 0 };
    let mut pair = QueuePair::new(&domain, &completions, limits)?;
    let route = Route::to_itself(choice, pair.number(), TIMES.first_packet);
    pair.bring_up(&route, Access::REMOTE_WRITE, &TIMES)?;
    Ok(pair)
}
