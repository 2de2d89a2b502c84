//! All rounds of all configurations of block groups of real processes.

use std::io::Write;

use super::case::{BlocksCase, Measured};
use super::cases;
use super::command::BlocksArguments;
use super::report::Printed;
use crate::error::BenchError;
use crate::machine::machine;
use crate::progress::StepsBar;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;

/// Runs all requested configurations.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &BlocksArguments, out: &mut impl Write) -> Result<(), BenchError> {
    let carrier = arguments.fabric;
    cases::check(arguments, carrier)?;
    let cases = cases::cases(arguments, carrier)?;
    let mut measured: Vec<Measured> = cases.iter().map(|_| Measured::default()).collect();
    measure(&cases, arguments.rounds, &Interrupts::watch()?, &mut measured)?;
    let rows = cases.iter().zip(&measured).map(|(case, measured)| case.row(measured)).collect();
    let printed = Printed { machine: machine(), rows };
    Ok(print(out, arguments.json, &printed, Printed::text)?)
}

/// Measures all cases in turn, round by round, so that other load on the machine affects all of
/// them equally.
fn measure(
    cases: &[BlocksCase<'_>],
    rounds: usize,
    interrupts: &Interrupts,
    measured: &mut [Measured],
) -> Result<(), BenchError> {
    let progress = StepsBar::new((cases.len() * rounds) as u64);
    for _ in 0..rounds {
        for (case, measured) in cases.iter().zip(&mut *measured) {
            let bytes = case.task.message_bytes;
            progress.set_message(format!("{} members, {bytes} bytes", case.nodes));
            case.round(interrupts, measured)?;
            progress.inc(1);
        }
    }
    Ok(())
}
