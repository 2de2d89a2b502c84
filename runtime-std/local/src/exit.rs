//! The end of a program: its exit statuses, and errors as one line that names the remedy.

use std::fmt;
use std::io;
use std::sync::OnceLock;

/// The program's name, with which lines on standard error begin.
static PROGRAM: OnceLock<&'static str> = OnceLock::new();

/// Sets the program's name. Only the first call has an effect.
pub(crate) fn set_program(name: &'static str) {
    let _ = PROGRAM.set(name);
}

/// Returns the program's name.
pub(crate) fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("tramontane")
}

/// The exit statuses, all defined here. Their numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The operating system refused something, or the program has a bug.
    Other = 1,
    /// The command line or a configuration is wrong.
    Usage = 2,
    /// The input cannot be read, is empty, or has a record that is too large.
    Input = 3,
    /// There is not enough shared memory, disk space, or another resource.
    Resources = 4,
    /// The members do not form a group: one is missing, one exists twice, or they do not match.
    Group = 5,
    /// A member was lost during the run, or stalled.
    PeerLost = 6,
    /// Members delivered different messages, or not all of them.
    Disagreement = 7,
    /// RDMA is requested, but there is no libibverbs or no usable device; or a check of it failed.
    Device = 8,
    /// The group continues without this member, or the group no longer has a majority.
    Out = 9,
    /// A node of the group file is down, but the group continues.
    NodeDown = 10,
    /// The group's history differs from the one that the subscriber has seen.
    Changed = 11,
    /// The program was interrupted: 128 plus the signal's number, as in shells.
    Interrupted = 130,
    /// The reader of the output has exited.
    OutputClosed = 141,
    /// The program was asked to end by SIGTERM.
    Terminated = 143,
}

impl Status {
    /// All statuses, for the help texts and for interpreting a worker's status.
    const ALL: [(Self, &'static str); 14] = [
        (Self::Other, "an operating system error, or a bug"),
        (Self::Usage, "wrong arguments or configuration"),
        (Self::Input, "input unreadable or empty, or a record too large"),
        (Self::Resources, "not enough shared memory, disk, or another resource"),
        (
            Self::Group,
            "a member is missing, runs twice or has a different configuration; or the group may \
             not form",
        ),
        (Self::PeerLost, "a member was lost or stalled during the run"),
        (Self::Disagreement, "members delivered different messages, or not all of them"),
        (Self::Device, "no usable RDMA device, or a check of it failed"),
        (Self::Out, "the others removed this member, or the group lost its majority"),
        (Self::NodeDown, "a node of the group file is down (status --expect-all)"),
        (
            Self::Changed,
            "the group lost messages that were printed, and has others at their positions \
             (subscribe)",
        ),
        (Self::Interrupted, "interrupted (SIGINT)"),
        (Self::OutputClosed, "the output was closed"),
        (Self::Terminated, "terminated (SIGTERM)"),
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status with the number `code`.
    pub fn of(code: u8) -> Self {
        let found = Self::ALL.iter().find(|(status, _)| status.code() == code);
        found.map_or(Self::Other, |(status, _)| *status)
    }
}

/// Returns the last part of a command's help: examples, then the exit statuses that only this
/// command has.
pub fn help(examples: &str, own: &[Status]) -> String {
    let rows = rows(|status| own.contains(&status));
    let program = program();
    format!(
        "Examples:\n{examples}\n\nExit status:\n    0  success\n{rows}  and those of every \
         command: see '{program} help exit-statuses'\n"
    )
}

/// Returns the table of all exit statuses.
pub(crate) fn table() -> String {
    let rows = rows(|_| true);
    format!("Exit statuses of all commands:\n    0  success\n{rows}")
}

fn rows(is_wanted: impl Fn(Status) -> bool) -> String {
    let wanted = Status::ALL.iter().filter(|(status, _)| is_wanted(*status));
    wanted.map(|(status, meaning)| format!("  {:>3}  {meaning}\n", status.code())).collect()
}

/// The reason that a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit status of the program.
    pub status: Status,
    text: String,
}

impl Failure {
    /// Creates a failure from its cause and its remedy.
    pub fn new(status: Status, what: impl fmt::Display, advice: &str) -> Self {
        Self::with_text(status, format!("{what}; {advice}"))
    }

    /// Creates a failure for a wrong command line or configuration.
    pub fn usage(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Usage, what, advice)
    }

    /// Creates a failure for unusable input.
    pub fn input(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Input, what, advice)
    }

    /// Creates a failure for members that do not form a group.
    pub fn group(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Group, what, advice)
    }

    /// Creates a failure for a member that was lost or stalled.
    pub fn peer_lost(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::PeerLost, what, advice)
    }

    /// Creates a failure for a refusal by the operating system, or for a bug in the program.
    pub fn other(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Other, what, advice)
    }

    /// Creates a failure from a text that already includes the remedy.
    pub fn with_text(status: Status, text: impl fmt::Display) -> Self {
        // File names and arguments are part of the text, and may contain any characters.
        let text = text.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { status, text }
    }

    /// Creates a failure that ends the program without a message.
    pub const fn silent(status: Status) -> Self {
        Self { status, text: String::new() }
    }

    /// Creates a failure for an operation that the operating system rarely refuses.
    pub fn system(action: impl fmt::Display, error: &io::Error) -> Self {
        if is_exhausted(error) {
            let advice = "free some of the exhausted resource, or raise its limit (df, ulimit -a)";
            return Self::new(Status::Resources, format_args!("{action}: {error}"), advice);
        }
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "give this user the right to do so, or choose another place"
            }
            io::ErrorKind::AddrInUse => "stop the process that uses it, or choose another address",
            _ => "see the system's message, and try again",
        };
        Self::other(format_args!("{action}: {error}"), advice)
    }

    /// Creates a failure for output that cannot be written.
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(Status::OutputClosed);
        }
        if error.kind() == io::ErrorKind::TimedOut {
            let what = format_args!("the output is not read: {error}");
            return Self::new(Status::OutputClosed, what, "read it, or give --log or --quiet");
        }
        Self::system("cannot write the output", error)
    }

    /// Returns the text, without the program's name.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Prints the failure on standard error, unless it has no message.
    pub fn report(&self) {
        use std::io::Write as _;
        if !self.text.is_empty() {
            // If standard error fails, there is nowhere else to write.
            let _ = writeln!(io::stderr(), "{}: {}", program(), self.text);
        }
    }
}

/// Returns whether a resource ran out, or has reached its limit.
pub fn is_exhausted(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    [StorageFull, QuotaExceeded, OutOfMemory, FileTooLarge].contains(&error.kind())
        || matches!(error.raw_os_error(), Some(code) if EXHAUSTED.contains(&code))
}

/// Numbers of the system errors that mean that a resource ran out: too many processes or open
/// files.
const EXHAUSTED: [i32; 3] = [
    rustix::io::Errno::AGAIN.raw_os_error(),
    rustix::io::Errno::MFILE.raw_os_error(),
    rustix::io::Errno::NFILE.raw_os_error(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_statuses_have_distinct_codes() {
        for (index, (status, _)) in Status::ALL.iter().enumerate() {
            assert_eq!(Status::of(status.code()), *status);
            assert!(Status::ALL[..index].iter().all(|(other, _)| other.code() != status.code()));
        }
        assert_eq!(Status::of(99), Status::Other);
    }

    #[test]
    fn failure_text_is_always_one_line() {
        let failure = Failure::input("cannot read a\nb\r\u{1b}[1m", "take another");
        assert_eq!(failure.text(), "cannot read a b  [1m; take another");
    }

    #[test]
    fn exhausted_resources_have_a_separate_exit_status() {
        let status =
            |code| Failure::system("cannot start", &io::Error::from_raw_os_error(code)).status;
        use rustix::io::Errno;
        for errno in [Errno::NOSPC, Errno::MFILE, Errno::NOMEM, Errno::FBIG] {
            assert_eq!(status(errno.raw_os_error()), Status::Resources, "{errno}");
        }
        assert_eq!(status(rustix::io::Errno::NOEXEC.raw_os_error()), Status::Other);
    }

    #[test]
    fn help_lists_own_statuses_and_table_lists_all() {
        let text = help("  tramontane demo", &[Status::Group]);
        let all = table();
        for (status, meaning) in Status::ALL {
            let row = format!("{:>3}  {meaning}", status.code());
            assert!(all.contains(&row), "{row}");
            assert_eq!(text.contains(&row), status == Status::Group, "{row}");
        }
    }
}
