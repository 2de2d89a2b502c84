//! The `check` command: judges histories.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::standard::is_standard;
use crate::check::judge;
use crate::history::{HistoryError, Trouble};
use crate::report::{Case, CaseStatus, Run};

/// The examples at the end of the command's help.
pub(super) const EXAMPLES: &str = "  tramontane-conformance check history.jsonl
  tramontane-conformance check --html report.html --junit junit.xml runs/*.jsonl
  tramontane-conformance check --json - history.jsonl
  zcat history.jsonl.gz | tramontane-conformance check -";

/// Size in bytes of each read. Histories are long.
const READ_BYTES: usize = 1 << 18;

/// The histories to judge.
#[derive(clap::Args, Debug)]
pub(super) struct CheckArguments {
    /// Histories with one JSON object per line; "-" is standard input, whose lines cannot be quoted
    #[arg(required = true, value_name = "HISTORY")]
    histories: Vec<PathBuf>,
}

/// Judges all of the histories, even if one of them cannot be judged.
pub(super) fn check(arguments: &CheckArguments) -> Run {
    let cases = arguments.histories.iter().map(|path| case(path)).collect();
    Run { adapter: None, implementation: None, features: Vec::new(), cases, cut_short: None }
}

fn case(path: &Path) -> Case {
    let standard = is_standard(path);
    let verdict = if standard { Ok(judge(io::stdin().lock())) } else { open(path).map(judge) };
    let (status, verdict) = match verdict {
        Ok(Ok(verdict)) => (CaseStatus::of(&verdict), Some(verdict)),
        Ok(Err(error)) => (CaseStatus::Broken(refused(&error)), None),
        Err(error) => (CaseStatus::Broken(unreadable(&error)), None),
    };
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    Case { history: (!standard).then(|| path.to_owned()), verdict, ..Case::new(name, status) }
}

fn open(path: &Path) -> io::Result<impl BufRead> {
    let file = File::open(path)?;
    // A folder can be opened, but the error from reading it would be less clear.
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(BufReader::with_capacity(READ_BYTES, file))
}

/// Explains why a file could not be opened, and suggests a remedy.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file; check the path".to_owned(),
        io::ErrorKind::IsADirectory => "this is a folder; name the history files in it".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "you have no permission to read it; change its permissions".to_owned()
        }
        _ => format!("it cannot be opened: {error}; check the path"),
    }
}

/// Explains why a history was refused, and suggests a remedy.
fn refused(error: &HistoryError) -> String {
    let advice = match error.trouble {
        Trouble::NotJson(_) | Trouble::NotUtf8(_) | Trouble::TooLong if error.line == 1 => {
            "check that the file is a history (see docs/history.md)"
        }
        Trouble::Read(_) => "copy it to a place where it can be read",
        _ => "correct the program that wrote it (see docs/history.md)",
    };
    format!("{error}; {advice}")
}
