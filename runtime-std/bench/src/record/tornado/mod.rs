//! How far each conclusion depends on each parameter: with half of it, and with double of it, all
//! else as it is.
//!
//! A conclusion is a main figure or ratio of a paper. Its run is one seed, and as short as those of
//! the record. A parameter that is zero on the conclusion's machine charges nothing there, and is
//! left out.
//!
//! | file | what it holds |
//! |---|---|
//! | `conclusions` | the conclusions |
//! | `drawing` | the bars as SVG |
//! | `report` | the table |

mod conclusions;
mod drawing;
mod report;

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use tramontane_fixtures::profile::{PARAMETERS, Parameter};

use super::command::Arguments;
use super::machines::Machines;
use super::run::write_text;
use super::runs::{Cache, Missing, Runs, asked};
use super::senders::Papers;
use crate::error::BenchError;
use crate::progress::Progress;
use conclusions::{CONCLUSIONS, Conclusion};
use tramontane_local::print::print;

const SEEDS: [u64; 1] = [1];

/// What moves a conclusion by less than this part of it does not count.
const NARROW: f64 = 0.01;

/// What half and double of a parameter lead to.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Bar {
    parameter: &'static str,
    half: f64,
    double: f64,
}

/// A conclusion, and what moves it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Tornado {
    conclusion: &'static str,
    machine: &'static str,
    unit: &'static str,
    /// With the profile as it is.
    usual: f64,
    /// At this the conclusion turns into its opposite.
    turns_at: Option<f64>,
    /// The widest first.
    bars: Vec<Bar>,
}

impl Bar {
    fn width(&self, usual: f64) -> f64 {
        (self.half - usual).abs().max((self.double - usual).abs())
    }
}

impl Tornado {
    /// Whether it is at the line already, where half and double tell of chance alone.
    fn is_even(&self) -> bool {
        self.turns_at.is_some_and(|line| (self.usual - line).abs() < NARROW * line.abs())
    }

    /// Parameters of which half or double turns the conclusion.
    fn turned_by(&self) -> Vec<&'static str> {
        let Some(line) = self.turns_at.filter(|_| !self.is_even()) else { return Vec::new() };
        let is_clear = |figure: f64| (figure - line).abs() >= NARROW * line.abs();
        let is_turned = |figure: f64| is_clear(figure) && (figure > line) != (self.usual > line);
        let turned = self.bars.iter().filter(|bar| is_turned(bar.half) || is_turned(bar.double));
        turned.map(|bar| bar.parameter).collect()
    }
}

/// Runs all conclusions with all parameters, draws what came of it, and prints it.
///
/// # Errors
/// [`BenchError`].
pub(super) fn run(
    arguments: &Arguments,
    drawing: &Path,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let machines = Machines::load(&arguments.machine)?;
    let tornados = measure(&machines, PARAMETERS)?;
    drawing::write(&tornados, drawing)?;
    if let Some(path) = &arguments.output {
        write_text(path, &report::markdown(&tornados, drawing))?;
    }
    Ok(print(out, arguments.json, &tornados, |tornados| report::text(tornados))?)
}

fn measure(machines: &Machines, parameters: &[Parameter]) -> Result<Vec<Tornado>, BenchError> {
    let progress = Progress::cleared_by_signals(1 + 2 * parameters.len() as u64);
    let usual = figures(machines, &CONCLUSIONS.iter().collect::<Vec<_>>())?;
    progress.inc(1);
    let of = |(conclusion, usual): (&Conclusion, f64)| Tornado {
        conclusion: conclusion.says,
        machine: conclusion.machine.name(),
        unit: conclusion.unit,
        usual,
        turns_at: conclusion.turns_at,
        bars: Vec::new(),
    };
    let mut tornados: Vec<Tornado> = CONCLUSIONS.iter().zip(usual).map(of).collect();
    for parameter in parameters {
        progress.set_message(parameter.name);
        let moved: Vec<usize> = (0..CONCLUSIONS.len())
            .filter(|place| machines.has(CONCLUSIONS[*place].machine, parameter.name))
            .collect();
        let looked_at: Vec<&Conclusion> = moved.iter().map(|place| &CONCLUSIONS[*place]).collect();
        let half = figures(&machines.times(parameter.name, 0.5), &looked_at)?;
        progress.inc(1);
        let double = figures(&machines.times(parameter.name, 2.0), &looked_at)?;
        progress.inc(1);
        for (place, (half, double)) in moved.into_iter().zip(half.into_iter().zip(double)) {
            tornados[place].bars.push(Bar { parameter: parameter.name, half, double });
        }
    }
    for Tornado { usual, bars, .. } in &mut tornados {
        bars.sort_by(|one, other| other.width(*usual).total_cmp(&one.width(*usual)));
    }
    Ok(tornados)
}

/// What conclusions come to on these machines.
fn figures(machines: &Machines, conclusions: &[&Conclusion]) -> Result<Vec<f64>, BenchError> {
    let papers = Papers(machines);
    let cache = Cache::new(&papers);
    let cases = asked(|runs| {
        for conclusion in conclusions {
            // What a figure of one leads to does not matter here.
            let _ = (conclusion.measure)(runs);
        }
    });
    cache.prepare(&cases, &SEEDS, &|| ())?;
    let runs = Runs::new(&cache, &SEEDS);
    let figure = |conclusion: &&Conclusion| match (conclusion.measure)(&runs) {
        Ok(figure) => Ok(figure),
        // A group that stalls delivers nothing.
        Err(Missing::NotThere(_)) => Ok(f64::NAN),
        Err(Missing::Failed(error)) => Err(error),
    };
    conclusions.iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::ProfileArguments;

    fn tornado(turns_at: Option<f64>) -> Tornado {
        let bar = |parameter, half, double| Bar { parameter, half, double };
        Tornado {
            conclusion: "a gain",
            machine: "spindle",
            unit: "times",
            usual: 1.2,
            turns_at,
            bars: vec![bar("post_ns", 0.9, 1.5), bar("look_ns", 1.1, 1.3)],
        }
    }

    #[test]
    fn a_conclusion_turns_where_half_or_double_is_on_the_other_side() {
        assert_eq!(tornado(Some(1.0)).turned_by(), ["post_ns"]);
        assert_eq!(tornado(Some(1.4)).turned_by(), ["post_ns"]);
        assert_eq!(tornado(Some(2.0)).turned_by(), Vec::<&str>::new());
        assert_eq!(tornado(None).turned_by(), Vec::<&str>::new());
        assert_eq!(tornado(Some(1.195)).turned_by(), Vec::<&str>::new(), "it is even");
        assert_eq!(tornado(Some(0.905)).turned_by(), Vec::<&str>::new(), "it is hardly turned");
    }

    #[test]
    fn the_port_limits_a_large_transfer_and_a_lock_does_not() {
        let machines = Machines::load(&ProfileArguments::default()).expect("they are here");
        let of_blocks: Vec<&Conclusion> =
            CONCLUSIONS.iter().filter(|one| one.says.starts_with("a transfer")).collect();
        let at =
            |name, factor| figures(&machines.times(name, factor), &of_blocks).expect("it runs");
        let usual = figures(&machines, &of_blocks).expect("it runs");
        assert!(at("flow_bytes_per_us", 0.5)[0] > 1.5 * usual[0]);
        assert_eq!(at("lock_ns", 0.5), usual);
    }
}
