//! The exit statuses, and errors as one line that includes the remedy.

use std::fmt;
use std::fmt::Write as _;
use std::io;

use crate::report::RunStatus;

/// The exit statuses. Their numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
    /// Every required promise holds.
    Passed = RunStatus::Passed.exit_status(),
    /// A required promise is broken.
    Failed = RunStatus::Failed.exit_status(),
    /// Some required promise could not be shown to hold.
    Inconclusive = RunStatus::Inconclusive.exit_status(),
    /// The harness, the adapter or a history is broken.
    Broken = RunStatus::Broken.exit_status(),
    /// The command line is wrong.
    Usage = 64,
    /// Interrupted by SIGINT: 128 plus the signal's number, as in shells.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Status {
    /// All statuses, for the help text.
    const ALL: [(Self, &'static str); 7] = [
        (Self::Passed, "every required promise holds (broken recommended ones are only reported)"),
        (Self::Failed, "a required promise is broken, whatever else happened"),
        (Self::Inconclusive, "nothing is broken, but some promises could not be shown to hold"),
        (
            Self::Broken,
            "the harness, the adapter or a history is broken, or a report cannot be written",
        ),
        (Self::Usage, "wrong arguments"),
        (Self::Interrupted, "interrupted (SIGINT)"),
        (Self::Terminated, "terminated (SIGTERM)"),
    ];

    /// The number.
    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the worse of two statuses. A broken promise is certain, so it overrides a broken
    /// harness, which overrides an inconclusive result. A signal or a wrong command line overrides
    /// everything.
    pub(super) fn worse(self, other: Self) -> Self {
        let rank = |status| match status {
            Self::Passed => 0,
            Self::Inconclusive => 1,
            Self::Broken => 2,
            Self::Failed => 3,
            Self::Usage | Self::Interrupted | Self::Terminated => 4,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl From<RunStatus> for Status {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Passed => Self::Passed,
            RunStatus::Failed => Self::Failed,
            RunStatus::Inconclusive => Self::Inconclusive,
            RunStatus::Broken => Self::Broken,
        }
    }
}

/// Returns the end of a command's help: examples, then the meaning of the exit statuses.
pub(super) fn help(examples: &str) -> String {
    let mut text =
        format!("Examples:\n{examples}\n\nExit status, the worst of several histories:\n");
    for (status, meaning) in Status::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:>3}  {meaning}", status.code());
    }
    text
}

/// The reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: Status,
    text: String,
}

impl Failure {
    /// Creates a failure from its cause and the advice on what to do about it.
    pub(super) fn new(status: Status, what: impl fmt::Display, advice: &str) -> Self {
        Self::with_advice(status, format_args!("{what}; {advice}"))
    }

    /// Creates a failure whose text already includes the advice.
    pub(super) fn with_advice(status: Status, text: impl fmt::Display) -> Self {
        // The text contains file names and arguments, which may contain any characters.
        Self { status, text: crate::report::printable(&text.to_string(), ERROR_CHARACTERS_MAX) }
    }

    /// Creates a failure without a message.
    pub(super) const fn silent(status: Status) -> Self {
        Self { status, text: String::new() }
    }

    /// Creates the failure for an output that cannot be written.
    pub(super) fn output(name: impl fmt::Display, error: &io::Error) -> Self {
        use io::ErrorKind::{IsADirectory, NotFound, PermissionDenied, QuotaExceeded, StorageFull};
        let advice = match error.kind() {
            StorageFull | QuotaExceeded => "free some space and run it again",
            NotFound => "create the folder first",
            IsADirectory => "name a file",
            PermissionDenied => "name a file that you may write",
            _ => "choose a different file",
        };
        Self::new(Status::Broken, format_args!("cannot write {name}: {error}"), advice)
    }

    /// Returns the text, without the program's name.
    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Prints the message on standard error, if there is one.
    pub(super) fn report(&self) {
        use std::io::Write as _;
        if !self.text.is_empty() {
            // An error on standard error itself cannot be reported.
            let _ = writeln!(io::stderr(), "tramontane-conformance: {}", self.text);
        }
    }
}

/// Length limit of an error that is shown whole.
const ERROR_CHARACTERS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conclusive_status_overrides_inconclusive_status() {
        use Status::{Broken, Failed, Inconclusive, Passed};
        for (one, other, worse) in [
            (Passed, Inconclusive, Inconclusive),
            (Inconclusive, Broken, Broken),
            (Broken, Failed, Failed),
            (Passed, Passed, Passed),
        ] {
            assert_eq!(one.worse(other), worse);
            assert_eq!(other.worse(one), worse);
        }
    }

    #[test]
    fn help_lists_every_status() {
        let text = help("  tramontane-conformance --list");
        for (status, meaning) in Status::ALL {
            assert!(text.contains(&format!("{:>3}  {meaning}", status.code())));
        }
    }

    #[test]
    fn hostile_names_keep_the_error_on_one_line() {
        let failure = Failure::new(Status::Broken, "cannot read a\nb\r\u{1b}[1m", "take another");
        assert!(!failure.text().chars().any(char::is_control), "{}", failure.text());
    }
}
