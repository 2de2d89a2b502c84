//! The load of a client: it keeps a number of messages in flight until all have been answered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tramontane_runtime::shards::{Answers, Client, Destinations, SendError};

use crate::error::BenchError;
use crate::low_rate::percentile;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The measurements of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientFigures {
    pub(super) messages_per_s: f64,
    /// Time from a multicast to the answers of all destinations: the median, the 99th percentile,
    /// and the maximum.
    pub(super) latency_us: [f64; 3],
}

/// The messages that a client multicasts.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) to: Destinations,
    pub(super) payload: Vec<u8>,
    /// Number of messages.
    pub(super) messages: u64,
    /// Maximum number of messages in flight.
    pub(super) under_way: u64,
}

impl Load {
    /// Runs until all messages have been answered.
    pub(super) fn run(&self, client: &mut Client) -> Result<ClientFigures, BenchError> {
        let begun = Instant::now();
        let mut sent_at: Vec<Instant> = Vec::with_capacity(self.messages as usize);
        let mut waited_us: Vec<f64> = Vec::with_capacity(self.messages as usize);
        let mut first = None;
        let mut now = begun;
        while (waited_us.len() as u64) < self.messages {
            let room = self.under_way.saturating_sub(client.under_way());
            let left = self.messages - sent_at.len() as u64;
            for _ in 0..room.min(left) {
                let taken = client.multicast(self.to, &self.payload, Answers::OneOfEach);
                let id = taken.map_err(|error| broken(&error))?;
                first.get_or_insert(id.number);
                sent_at.push(now);
            }
            let answered = client.wait(PATIENCE).map_err(|error| broken(&error))?;
            let mut answered = Some(answered.ok_or_else(late)?);
            // The clock is read once for all answers that arrived together, because a reading costs
            // as much as a small message.
            now = Instant::now();
            while let Some(one) = answered {
                let place = one.id.number - first.unwrap_or(one.id.number);
                let waited = now.duration_since(sent_at[place as usize]);
                waited_us.push(waited.as_secs_f64() * 1e6);
                answered = client.poll();
            }
        }
        let seconds = now.duration_since(begun).as_secs_f64().max(1e-9);
        Ok(ClientFigures {
            messages_per_s: waited_us.len() as f64 / seconds,
            latency_us: [50, 99, 100].map(|percent| percentile(waited_us.clone(), percent)),
        })
    }

    /// Sends until it is ordered to stop, and publishes the longest time without an answer.
    pub(super) fn run_until(
        &self,
        client: &mut Client,
        is_over: &AtomicBool,
        longest_gap_ns: &AtomicU64,
    ) -> Result<(), BenchError> {
        let mut before = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            while client.under_way() < self.under_way {
                match client.multicast(self.to, &self.payload, Answers::OneOfEach) {
                    Ok(_) => {}
                    Err(SendError::Full) => break,
                    Err(error) => return Err(broken(&error)),
                }
            }
            client.wait(PATIENCE).map_err(|error| broken(&error))?.ok_or_else(late)?;
            while client.poll().is_some() {}
            let now = Instant::now();
            let gap = u64::try_from(now.duration_since(before).as_nanos()).unwrap_or(u64::MAX);
            longest_gap_ns.fetch_max(gap, Ordering::Relaxed);
            before = now;
        }
        Ok(())
    }
}

/// Returns the error for a client that cannot continue.
pub(super) fn broken(error: &dyn std::error::Error) -> BenchError {
    BenchError::Broken(error.to_string())
}

fn late() -> BenchError {
    BenchError::Broken(format!("no answer arrived within {PATIENCE:?}"))
}
