//! Leaders that are killed under load, and the time until the next leader delivers.
//!
//! A kill is `SIGKILL`. The killed replica returns and counts in quorums again before the next
//! kill.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::shards::{Client, Places};

use super::crew::{Leading, Replicas};
use super::load::{Load, broken};
use super::tram::{Setting, connect};
use crate::error::BenchError;
use crate::low_rate::percentile;

/// Time limit for the next leader.
const LIMIT: Duration = Duration::from_secs(10);

/// Time between a return and the next kill.
const CALM: Duration = Duration::from_millis(200);

/// A measured time over all kills, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Times {
    pub(super) median: f64,
    pub(super) p90: f64,
    pub(super) max: f64,
}

/// The measurements of the kills over one fabric.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Takeovers {
    pub(super) fabric: &'static str,
    pub(super) kills: usize,
    /// Time from the kill until another replica leads.
    pub(super) leads_ms: Times,
    /// Time from the kill to the first delivery of the next leader.
    pub(super) delivers_ms: Times,
    /// The longest time without an answer.
    pub(super) unanswered_ms: Times,
    /// Number of further leaders after the first one that follows a kill, until the killed replica
    /// counts in quorums again.
    pub(super) further_leaders: u32,
}

#[derive(Clone, Copy, Debug)]
struct Takeover {
    leads_ms: f64,
    delivers_ms: f64,
    unanswered_ms: f64,
    further_leaders: u32,
}

impl Times {
    fn of(takeovers: &[Takeover], time: impl Fn(&Takeover) -> f64) -> Self {
        let times: Vec<f64> = takeovers.iter().map(time).collect();
        let [median, p90, max] = [50, 90, 100].map(|percent| percentile(times.clone(), percent));
        Self { median, p90, max }
    }
}

/// Kills leaders and measures the takeovers.
pub(super) fn run(
    setting: &Setting,
    disk: &Path,
    kills: u32,
    interrupts: &Interrupts,
    progress: &dyn Fn(),
) -> Result<Takeovers, BenchError> {
    let overlay = setting.overlay()?;
    let places = Places::new(&overlay, overlay.overlay().map_err(|error| broken(&error))?);
    let mut replicas = Replicas::start(&overlay, &places, disk, interrupts)?;
    let [_, load] = setting.loads();
    let client = connect(setting, &overlay)?;
    let (is_over, longest_gap_ns) = (AtomicBool::new(false), AtomicU64::new(0));
    let takeovers = std::thread::scope(|scope| {
        let client = {
            let (load, is_over, longest_gap_ns) = (&load, &is_over, &longest_gap_ns);
            scope.spawn(move || drive(load, client, is_over, longest_gap_ns))
        };
        let one = |_| {
            let takeover = kill(&mut replicas, &longest_gap_ns);
            progress();
            takeover
        };
        let takeovers: Result<Vec<Takeover>, BenchError> = (0..kills).map(one).collect();
        is_over.store(true, Ordering::Relaxed);
        let panicked = |_| BenchError::Broken("the client of the run panicked".into());
        client.join().map_err(panicked)??;
        takeovers
    })?;
    Ok(Takeovers {
        fabric: setting.carrier.name(),
        kills: takeovers.len(),
        leads_ms: Times::of(&takeovers, |takeover| takeover.leads_ms),
        delivers_ms: Times::of(&takeovers, |takeover| takeover.delivers_ms),
        unanswered_ms: Times::of(&takeovers, |takeover| takeover.unanswered_ms),
        further_leaders: takeovers.iter().map(|takeover| takeover.further_leaders).sum(),
    })
}

fn drive(
    load: &Load,
    mut client: Client,
    is_over: &AtomicBool,
    longest_gap_ns: &AtomicU64,
) -> Result<(), BenchError> {
    load.run_until(&mut client, is_over, longest_gap_ns)
}

/// Kills the leader, and waits until the next one has delivered and the killed replica has
/// returned.
fn kill(replicas: &mut Replicas<'_>, longest_gap_ns: &AtomicU64) -> Result<Takeover, BenchError> {
    let until = Instant::now() + CALM;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        replicas.hear(left)?;
    }
    longest_gap_ns.store(0, Ordering::Relaxed);
    let nobody = || BenchError::Broken("no replica leads".into());
    let (name, killed_ns) = replicas.kill_leader().ok_or_else(nobody)?;
    let since_ms = |at_ns: u64| at_ns.saturating_sub(killed_ns) as f64 / 1e6;
    let until = Instant::now() + LIMIT;
    let (mut leads_ms, mut begun, mut delivers_ms) = (None, 0, None);
    while delivers_ms.is_none() {
        match replicas.hear(Duration::from_millis(5))? {
            Some(Leading::Begun { at_ns }) => {
                begun += 1;
                leads_ms = leads_ms.or(Some(since_ms(at_ns)));
            }
            Some(Leading::Delivered { at_ns }) => delivers_ms = Some(since_ms(at_ns)),
            None if Instant::now() >= until => {
                return Err(BenchError::Broken(format!("no leader delivered within {LIMIT:?}")));
            }
            None => {}
        }
    }
    // A client that was just about to sleep sees the answers slightly later.
    replicas.hear(Duration::from_millis(5))?;
    let unanswered_ms = longest_gap_ns.load(Ordering::Relaxed) as f64 / 1e6;
    replicas.start_one(name)?;
    begun += replicas.wait_until_all_vote()?;
    Ok(Takeover {
        leads_ms: leads_ms.unwrap_or_default(),
        delivers_ms: delivers_ms.unwrap_or_default(),
        unanswered_ms,
        further_leaders: begun.saturating_sub(1),
    })
}
