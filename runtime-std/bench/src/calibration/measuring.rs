//! The runs as they are: processes of this machine, one a member, as the other experiments start
//! them.

use serde::{Deserialize, Serialize};
use tramontane_core::multicast::Switches;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::rdma::DeviceOptions;

use super::errors::Quartiles;
use super::held_out::{Fabric, Figure, HeldOut, LOW_RATE_INTERVAL_US, LOW_RATE_MESSAGES};
use super::state::State;
use crate::blocks::real::cases::suiting;
use crate::error::BenchError;
use crate::low_rate::{last_of, percentile};
use crate::member::{LowRate, Sending};
use crate::options::Drive;
use crate::processes::{self, Placement, Start};
use crate::progress::Progress;
use crate::spread::median;

/// How long a run at full speed takes, about.
const RUN_NS: u64 = 150_000_000;

/// Bytes of a run's large messages, about.
const BLOCK_RUN_BYTES: usize = 64 << 20;

/// A run and what all its rounds came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Which run.
    pub(super) run: HeldOut,
    /// Its figure, round by round.
    pub(super) rounds: Vec<f64>,
    /// Readings that are not among these: the machine's state was not the profile's, or changed.
    #[serde(default)]
    pub(super) set_aside: usize,
}

impl Measured {
    pub(super) fn quartiles(&self) -> Quartiles {
        Quartiles::of(&self.rounds)
    }
}

/// Rounds of which readings are set aside are repeated, until there were so many times as many.
const ATTEMPTS: usize = 3;

/// Measures all runs in turn, round by round: what else the machine does meets all alike. Of a
/// state, readings count that begin and end in it; those of other states are repeated, so often
/// and no longer.
pub(super) fn measure(
    runs: Vec<HeldOut>,
    rounds: usize,
    (state, interrupts): (Option<State>, &Interrupts),
) -> Result<Vec<Measured>, BenchError> {
    let progress = Progress::new((runs.len() * rounds) as u64);
    let none = |run| Measured { run, rounds: Vec::with_capacity(rounds), set_aside: 0 };
    let mut measured: Vec<Measured> = runs.into_iter().map(none).collect();
    for _ in 0..ATTEMPTS * rounds {
        let missing = measured.iter_mut().filter(|measured| measured.rounds.len() < rounds);
        for Measured { run, rounds, set_aside } in missing {
            progress.set_message(format!("{} members, {} bytes", run.members, run.bytes));
            // A machine that does not come back is not waited for again.
            if let Some(state) = state
                && !state.is_awaited()?
            {
                return Ok(measured);
            }
            let reading = round(run, interrupts)?;
            if let Some(state) = state
                && !State::probe()?.is(state)
            {
                *set_aside += 1;
                continue;
            }
            rounds.push(reading);
            progress.inc(1);
        }
    }
    Ok(measured)
}

fn round(run: &HeldOut, interrupts: &Interrupts) -> Result<f64, BenchError> {
    let start = Start {
        carrier: run.fabric.carrier(),
        device: &DeviceOptions::default(),
        placement: Placement::Spread,
        interrupts,
    };
    match run.figure {
        Figure::Rate => rate(run, &start),
        Figure::OwnLatency | Figure::PeerLatency => latency_ns(run, &start),
        Figure::BlockLatency => block_latency_ns(run, &start),
    }
}

fn block_latency_ns(run: &HeldOut, start: &Start<'_>) -> Result<f64, BenchError> {
    let bytes = run.bytes as usize;
    let messages = (BLOCK_RUN_BYTES / bytes).max(5) as u64;
    let task = suiting(start.carrier, bytes).of(messages);
    let outcomes = processes::run(&run.group()?, &task, start)?;
    let times = outcomes.iter().flat_map(|outcome| &outcome.latency_ns);
    Ok(median(&times.map(|time| f64::from(*time)).collect::<Vec<_>>()))
}

fn rate(run: &HeldOut, start: &Start<'_>) -> Result<f64, BenchError> {
    let sending = Sending {
        message_bytes: run.bytes as usize,
        messages: messages(run),
        switch_bits: Switches::all().bits(),
        untouched: false,
        delay_ns: run.delay_us * 1_000,
        delayed: u16::from(run.delay_us > 0),
        drive: Drive::Caller,
    };
    let outcomes = processes::run(&run.group()?, &sending, start)?;
    Ok(median(&outcomes.iter().map(|outcome| outcome.messages_per_s).collect::<Vec<_>>()))
}

/// Messages of each sender: enough for [`RUN_NS`] on a machine that is about as fast as this one.
fn messages(run: &HeldOut) -> u64 {
    let byte_ns = |bytes: u64| bytes * u64::from(run.bytes) / 80;
    let message_ns = match run.fabric {
        Fabric::Shm => 20 + byte_ns(10),
        Fabric::Tcp => 500 + byte_ns(40),
    };
    let message_ns = message_ns + run.delay_us * 1_000 / 2;
    (RUN_NS / message_ns / u64::from(run.senders)).max(500)
}

fn latency_ns(run: &HeldOut, start: &Start<'_>) -> Result<f64, BenchError> {
    let low_rate = LowRate {
        message_bytes: run.bytes as usize,
        messages: LOW_RATE_MESSAGES,
        interval_ns: LOW_RATE_INTERVAL_US * 1_000,
    };
    let outcomes = processes::run(&run.group()?, &low_rate, start)?;
    let lists: Vec<&[u32]> = outcomes.iter().map(|outcome| outcome.latency_ns.as_slice()).collect();
    Ok(match run.figure {
        Figure::OwnLatency => percentile(last_of(&lists[..1]), 50),
        _ => percentile(last_of(&lists[1..]), 50),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::held_out::runs;

    #[test]
    fn a_run_is_long_enough_to_be_measured_and_short_enough_for_many() {
        let all = runs(Fabric::Shm).into_iter().chain(runs(Fabric::Tcp));
        for run in &all.filter(|run| run.figure != Figure::BlockLatency).collect::<Vec<_>>() {
            let all = messages(run) * u64::from(run.senders);
            assert!((500..=10_000_000).contains(&all), "{run:?}: {all}");
        }
    }
}
