//! The user's own check programs, each of which reads a history and reports violations.
//!
//! The program is started for each history, with the history's path as its last argument. For each
//! violation it writes one line to standard output, a JSON object: `what` is a sentence, and the
//! optional `lines` lists the numbers of the records that prove the violation. The program exits
//! with status 0, with or without violations. Anything else is a fault of the program, and the case
//! is broken.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::check::{Finding, Witness};
use crate::report::{CaseStatus, OwnCheck, OwnOutcome, Run, shortened};

/// Time limit for a program to judge one history.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Maximum size of the output that is read from a program, in bytes.
const OUTPUT_BYTES_MAX: u64 = 8 << 20;

/// Length limit of a program's text that is shown whole.
const TEXT_CHARACTERS_MAX: usize = 400;

/// Limit of records shown for the first violation.
const LINES_MAX: usize = 64;

/// A line of a program's output.
#[derive(Deserialize)]
struct Violation {
    what: String,
    #[serde(default)]
    lines: Vec<u64>,
}

/// Judges the histories of a run with programs, each given as a shell command line. A violation
/// fails a case in the same way as a broken required promise.
///
/// # Errors
/// Fails with the command that cannot be parsed.
pub fn judge(run: &mut Run, commands: &[String]) -> Result<(), String> {
    for command in commands {
        let words = shell_words::split(command).map_err(|error| format!("{command}: {error}"))?;
        let Some((program, arguments)) = words.split_first() else {
            return Err("the command of a check program is empty".to_owned());
        };
        for case in &mut run.cases {
            // If a case did not run or could not be read, there is nothing to judge.
            let Some(history) = case.history.as_deref().filter(|_| case.verdict.is_some()) else {
                continue;
            };
            let outcome = ask(program, arguments, history);
            match &outcome {
                OwnOutcome::Held => {}
                OwnOutcome::Broken { .. } => case.status = CaseStatus::Failed,
                OwnOutcome::Failed(why) => {
                    if case.status != CaseStatus::Failed {
                        case.status = CaseStatus::Broken(format!("{command}: {why}"));
                    }
                }
            }
            case.own_checks.push(OwnCheck { command: command.clone(), outcome });
        }
    }
    Ok(())
}

/// Returns a program's result for one history.
fn ask(program: &str, arguments: &[String], history: &Path) -> OwnOutcome {
    let mut command = Command::new(program);
    command.args(arguments).arg(history).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return OwnOutcome::Failed(format!("it cannot be started: {error}")),
    };
    let heard = hear(&mut child);
    if heard.is_err() {
        // This fails only if the program has ended.
        let _ = child.kill();
    }
    let status = child.wait();
    match (heard, status) {
        (Err(why), _) => OwnOutcome::Failed(why),
        (_, Err(error)) => OwnOutcome::Failed(format!("cannot wait for it to exit: {error}")),
        (_, Ok(status)) if !status.success() => {
            OwnOutcome::Failed(format!("it ended with {status}"))
        }
        (Ok((_, None)), _) => OwnOutcome::Held,
        (Ok((times, Some(first))), _) => OwnOutcome::Broken { times, finding: first },
    }
}

/// Reads a program's output: the number of violations, and the first one.
fn hear(child: &mut Child) -> Result<(u64, Option<Finding>), String> {
    let output = child.stdout.take().ok_or("it has no output")?;
    let (said, lines) = mpsc::sync_channel(64);
    let reader = move || {
        for line in BufReader::new(output.take(OUTPUT_BYTES_MAX)).lines() {
            // The receiver has been dropped if the time limit has passed.
            if said.send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("check-program".to_owned())
        .spawn(reader)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    let until = Instant::now() + TIME_MAX;
    let (mut times, mut first) = (0, None);
    loop {
        let line = match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => line.map_err(|error| format!("cannot read its output: {error}"))?,
            Err(RecvTimeoutError::Disconnected) => return Ok((times, first)),
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("it took longer than {} s", TIME_MAX.as_secs()));
            }
        };
        if line.trim().is_empty() {
            continue;
        }
        let violation: Violation = serde_json::from_str(&line).map_err(|error| {
            format!(
                "this line does not describe a violation: {}: {error}",
                shortened(&line, TEXT_CHARACTERS_MAX)
            )
        })?;
        times += 1;
        first.get_or_insert_with(|| found(violation));
    }
}

fn found(Violation { what, lines }: Violation) -> Finding {
    let last = lines.len().min(LINES_MAX);
    let witness = lines.into_iter().take(LINES_MAX).enumerate().map(|(place, line)| Witness {
        line,
        role: "named by the program",
        culprit: place + 1 == last,
    });
    Finding { what, witness: witness.collect() }
}
