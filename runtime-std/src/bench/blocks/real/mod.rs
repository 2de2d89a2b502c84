//! Block groups of real processes of this machine, over shared memory, TCP or RDMA, in turn with what the machine can do and
//! with Open MPI's `MPI_Bcast`.
//!
//! | file | what it holds |
//! |---|---|
//! | `cases` | the configurations that are asked for |
//! | `case` | a round of one, and what its rounds came to |
//! | `member` | one process of block groups, and what is timed |
//! | `taking`, `hearing` | what a receiver takes, and what the root hears of it |
//! | `pause` | a member that is delayed |
//! | `limit`, `way` | the machine's limit: copies at each receiver, or bytes read where they lie |
//! | `mpi` | `MPI_Bcast`, of a program in C that is compiled when it is asked for |
//! | `clock` | one clock for all processes, and the marks of a message |
//! | `report`, `drawing` | rows as text and JSON, and as a drawing |

mod case;
mod cases;
mod clock;
mod drawing;
mod hearing;
pub(in crate::bench) mod limit;
pub(in crate::bench) mod member;
mod mpi;
mod pause;
mod report;
mod taking;
pub(in crate::bench) mod way;

use std::io::Write;

use super::command::Arguments;
use crate::bench::progress::Progress;
use crate::bench::report::machine;
use crate::bench::{BenchError, print};
use crate::local::Carrier;
use case::{Case, Measured};
use mpi::Broadcast;
use report::Printed;

/// Runs all configurations that are asked for.
pub(super) fn run(
    arguments: &Arguments,
    carrier: Carrier,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    cases::check(arguments, carrier)?;
    let cases = cases::cases(arguments, carrier)?;
    let (broadcast, mut note) = match arguments.probe.then(Broadcast::compile) {
        None => (None, None),
        Some(Ok(broadcast)) => (Some(broadcast), None),
        Some(Err(note)) => (None, Some(note)),
    };
    let mut measured: Vec<Measured> = cases.iter().map(|_| Measured::default()).collect();
    note = measure(&cases, arguments.rounds, broadcast.as_ref(), &mut measured)?.or(note);
    let rows = cases.iter().zip(&measured).map(|(case, measured)| case.row(measured)).collect();
    let printed = Printed { machine: machine(), rows, note };
    if let Some(path) = &arguments.plot {
        drawing::drawing(&printed.rows).write(path)?;
    }
    print(out, arguments.json, &printed, || printed.text())
}

/// All cases in turn, round by round: what else the machine does meets all alike. Says why there is nothing of MPI, if
/// it should be there.
fn measure(
    cases: &[Case<'_>],
    rounds: usize,
    broadcast: Option<&Broadcast>,
    measured: &mut [Measured],
) -> Result<Option<String>, BenchError> {
    let progress = Progress::new((cases.len() * rounds) as u64);
    let mut note = None;
    for round in 0..rounds {
        for (index, case) in cases.iter().enumerate() {
            progress.set_message(format!("{} members, {} bytes", case.nodes, case.bytes));
            let undisturbed_ms = case.compared_with.map(|index| measured[index].latencies[round]);
            note = case.round(undisturbed_ms, broadcast, &mut measured[index])?.or(note);
            progress.inc(1);
        }
    }
    Ok(note)
}
