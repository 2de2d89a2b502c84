//! The rounds of `bench views`.

use std::time::{Duration, Instant};

use clap::ValueEnum as _;

use crate::command::Views;
use crate::error::BenchError;
use crate::machine::machine;
use crate::progress::StepsBar;
use crate::views::departure::Departure;
use crate::views::observer::{Observer, PATIENCE};
use crate::views::report::{Rounds, ViewsReport};
use tramontane_local::clock::now_ns;
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::name;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::rdma::{self, DeviceOptions};

/// Runs `bench views`.
///
/// # Errors
/// Fails with a [`BenchError`], in particular with [`BenchError::Broken`] if a guarantee was
/// violated.
pub(crate) fn run(arguments: &Views, interrupts: &Interrupts) -> Result<ViewsReport, BenchError> {
    if arguments.nodes < 3 {
        return Err(BenchError::Arguments(
            "--nodes must be at least 3, because one of two members is not a majority".into(),
        ));
    }
    if arguments.fabric == Carrier::Verbs {
        // Checked before any process is started, because each process would report the same error.
        rdma::choose(&DeviceOptions::default()).map_err(LocalError::from)?;
    }
    let ways = if arguments.ways.is_empty() {
        Departure::value_variants().to_vec()
    } else {
        arguments.ways.clone()
    };
    let progress = StepsBar::new(u64::from(arguments.rounds));
    let mut observer = Observer::start(arguments, interrupts)?;
    let mut rounds = Rounds::default();
    for round in 0..arguments.rounds {
        let way = ways[usize::try_from(round).unwrap_or(0) % ways.len()];
        progress.set_message(name(&way));
        one_round(&mut observer, arguments, way, &mut rounds)?;
        progress.inc(1);
    }
    drop(progress);
    let checked = observer.end()?;
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

/// Makes one member depart while the others continue, and waits until it has returned.
fn one_round(
    observer: &mut Observer<'_>,
    arguments: &Views,
    way: Departure,
    rounds: &mut Rounds,
) -> Result<(), BenchError> {
    // Waits until a random moment in the stream.
    std::thread::sleep(Duration::from_millis(20 + observer.draw(arguments.settle_ms.max(1))));
    let victim = observer.pick();
    let asked = now_ns();
    match way {
        Departure::Kill => observer.kill(victim)?,
        Departure::Stop => observer.stop(victim)?,
        Departure::Leave => observer.leave(victim)?,
    }
    let gone = observer.await_delivery_without(victim, asked, PATIENCE)?;
    let since = |ns: u64| Duration::from_nanos(ns.saturating_sub(asked)).as_secs_f64() * 1e3;
    rounds.add(way, gone.iter().map(|at| since(*at)).collect());
    if way == Departure::Stop {
        observer.resume(victim)?;
        observer.await_end(victim, PATIENCE)?;
    }
    if way == Departure::Leave {
        let left = observer.await_end(victim, PATIENCE)?;
        rounds.add_left(since(left));
    }
    observer.check_logs()?;
    let started = Instant::now();
    observer.start_again(victim)?;
    observer.await_all_in(PATIENCE)?;
    rounds.add_back(started.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
