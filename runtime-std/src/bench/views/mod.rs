//! What a change of membership costs, and whether it keeps what it promises: real processes under load, of which one at
//! a time is killed, stopped or asked to leave, and then started again.
//!
//! | file | subject |
//! |---|---|
//! | `member` | one process: it sends, checks and logs what it delivers, and says what happens to it |
//! | `crew` | the processes, and what they say |
//! | `logs` | the logs of a view, compared with each other |
//! | `report` | what came of it |
//!
//! # What is checked
//! - At each member, each start of a sender: its messages come as 0, 1, 2, ... through all views and with the state that a
//!   joiner takes over: nothing lost, doubled or reordered.
//! - Of each view: whoever goes on to the next one delivered the same, in the same order (VIE-8); whoever does not, a part of
//!   it from the start (VIE-6).
//! - Whoever is started again is in a view of all members again.

mod crew;
mod logs;
pub mod member;
mod report;

use std::time::{Duration, Instant};

use super::BenchError;
use super::command::Views;
use super::processes::Spread;
use super::progress::Progress;
use super::report::machine;
use crate::local::{Carrier, LocalError};
use crate::rdma::NotBuilt;
use crew::Crew;
use report::Rounds;
pub use report::{ViewsReport, Way, WaySummary};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `bench views`.
///
/// # Errors
/// [`BenchError`]; [`BenchError::Broken`] if a promise was broken.
pub fn run(arguments: &Views) -> Result<ViewsReport, BenchError> {
    if arguments.nodes < 3 {
        return Err(BenchError::Arguments(
            "--nodes must be at least 3: of two, one is no majority".into(),
        ));
    }
    if arguments.fabric == Carrier::Verbs && !crate::rdma::BUILT {
        return Err(LocalError::from(NotBuilt).into());
    }
    let ways: Vec<Way> =
        if arguments.ways.is_empty() { Way::ALL.to_vec() } else { arguments.ways.clone() };
    let progress = Progress::new(u64::from(arguments.rounds));
    let mut crew = Crew::start(arguments)?;
    let mut rounds = Rounds::default();
    for round in 0..arguments.rounds {
        let way = ways[usize::try_from(round).unwrap_or(0) % ways.len()];
        progress.set_message(way.name());
        one_round(&mut crew, arguments, way, &mut rounds)?;
        progress.inc(1);
    }
    drop(progress);
    let checked = crew.end()?;
    Ok(ViewsReport {
        machine: machine(),
        fabric: arguments.fabric.name(),
        nodes: arguments.nodes,
        failure_timeout_ms: arguments.failure_timeout_ms,
        heartbeat_ms: arguments.heartbeat_ms,
        seed: arguments.seed,
        ways: rounds.summaries(),
        views: checked.views,
        messages: checked.messages,
        promised: checked.promised,
        removed_by_mistake: checked.removed_by_mistake,
    })
}

/// One member goes, the others go on, and it comes back.
fn one_round(
    crew: &mut Crew,
    arguments: &Views,
    way: Way,
    rounds: &mut Rounds,
) -> Result<(), BenchError> {
    // At a random moment of the stream.
    std::thread::sleep(Duration::from_millis(20 + crew.draw(arguments.settle_ms.max(1))));
    let victim = crew.pick();
    let asked = crew.now_ns();
    match way {
        Way::Kill => crew.kill(victim)?,
        Way::Stop => crew.stop(victim)?,
        Way::Leave => crew.leave(victim)?,
    }
    let gone = crew.await_delivery_without(victim, asked, PATIENCE)?;
    let since = |ns: u64| Duration::from_nanos(ns.saturating_sub(asked)).as_secs_f64() * 1e3;
    rounds.add(way, gone.iter().map(|at| since(*at)).collect());
    if way == Way::Stop {
        crew.resume(victim)?;
        crew.await_end(victim, PATIENCE)?;
    }
    if way == Way::Leave {
        let left = crew.await_end(victim, PATIENCE)?;
        rounds.add_left(since(left));
    }
    crew.check_logs()?;
    let started = Instant::now();
    crew.start_again(victim)?;
    crew.await_all_in(PATIENCE)?;
    rounds.add_back(started.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// The spread of some durations in ms; nothing of none.
fn spread(durations_ms: &[f64]) -> Option<Spread> {
    (!durations_ms.is_empty()).then(|| Spread::of(durations_ms))
}
