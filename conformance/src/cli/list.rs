//! The `--list` option: lists the checks and the scenarios.

use std::io::{self, Write};

use anstyle::Style;
use serde::Serialize;

use super::exit::{Failure, Status};
use super::run;
use super::standard::check_written;
use crate::check::{Check, CheckId};

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

#[derive(Serialize)]
struct SuiteLists {
    checks: Vec<&'static Check>,
    scenarios: Vec<Scenario>,
}

#[derive(Serialize)]
struct Scenario {
    name: String,
    sentence: String,
}

/// Prints the checks and the scenarios.
pub(super) fn print(json: bool) -> Result<Status, Failure> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    let written = if json { as_json(&mut out) } else { as_text(&mut out) };
    check_written(written.and_then(|()| out.flush()), "the lists").map(|()| Status::Passed)
}

fn as_json(out: &mut impl Write) -> io::Result<()> {
    let scenarios =
        run::scenarios().into_iter().map(|(name, sentence)| Scenario { name, sentence });
    let lists = SuiteLists {
        checks: CheckId::ALL.iter().map(|id| id.check()).collect(),
        scenarios: scenarios.collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &lists)?;
    writeln!(out)
}

fn as_text(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Checks, in the order of reports:\n")?;
    for id in CheckId::ALL {
        let check = id.check();
        writeln!(out, "{STRONG}{}{STRONG:#} ({})", check.name, check.strength)?;
        writeln!(out, "  {}\n  {FAINT}{}{FAINT:#}", check.sentence, check.source)?;
    }
    let scenarios = run::scenarios();
    if !scenarios.is_empty() {
        writeln!(out, "\nScenarios:\n")?;
    }
    for (name, sentence) in scenarios {
        writeln!(out, "{STRONG}{name}{STRONG:#}\n  {sentence}")?;
    }
    Ok(())
}
