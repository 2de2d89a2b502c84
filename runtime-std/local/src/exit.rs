//! How the program ends: its exit statuses, and errors as one line that says what to do.

use std::fmt;
use std::io;
use std::sync::OnceLock;

/// What lines on standard error begin with.
static PROGRAM: OnceLock<&'static str> = OnceLock::new();

/// Says what the program is called. The first call counts.
pub(crate) fn set_program(name: &'static str) {
    let _ = PROGRAM.set(name);
}

/// What the program is called.
pub(crate) fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("tramontane")
}

/// The exit statuses: the one place where they are given out. Their numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The operating system refused something, or the program is wrong.
    Other = 1,
    /// The command line or a configuration is wrong.
    Usage = 2,
    /// The input cannot be read, is empty, or has a record that is too large.
    Input = 3,
    /// Not enough shared memory, disk, or of another resource.
    Resources = 4,
    /// The members do not make a group: one is missing, one is there twice, or they do not match.
    Group = 5,
    /// A member was lost in mid-run, or stalled.
    PeerLost = 6,
    /// Members delivered different things, or not all.
    Disagreement = 7,
    /// RDMA is wanted, and there is no libibverbs or no device that can be used; or a check of it
    /// failed.
    Device = 8,
    /// The group goes on without this member, or has no majority any more.
    Out = 9,
    /// A node of the group file is down, though the group goes on.
    NodeDown = 10,
    /// The group has another history than a subscriber was told.
    Changed = 11,
    /// Interrupted: 128 and the signal's number, as shells have it.
    Interrupted = 130,
    /// The reader of the output has gone.
    OutputClosed = 141,
    /// Asked to end.
    Terminated = 143,
}

impl Status {
    /// All of them, for the help and to read a worker's.
    const ALL: [(Self, &'static str); 14] = [
        (Self::Other, "the operating system refused something, or a bug"),
        (Self::Usage, "wrong arguments or configuration"),
        (Self::Input, "input unreadable or empty, or a record too large"),
        (Self::Resources, "not enough shared memory, disk, or another resource"),
        (
            Self::Group,
            "a member is missing, runs twice or has another configuration; or the group may not form",
        ),
        (Self::PeerLost, "a member was lost or stalled during the run"),
        (Self::Disagreement, "members delivered different things, or not all"),
        (Self::Device, "no usable RDMA device, or a check of it failed"),
        (Self::Out, "the others removed this member, or the group lost its majority"),
        (Self::NodeDown, "a node of the group file is down (status --expect-all)"),
        (
            Self::Changed,
            "the group lost messages that were printed, and has others in their places (subscribe)",
        ),
        (Self::Interrupted, "interrupted (SIGINT)"),
        (Self::OutputClosed, "the output was closed"),
        (Self::Terminated, "terminated (SIGTERM)"),
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The status of that number.
    pub fn of(code: u8) -> Self {
        let found = Self::ALL.iter().find(|(status, _)| status.code() == code);
        found.map_or(Self::Other, |(status, _)| *status)
    }
}

/// The end of a command's help: examples, then what the exit statuses mean.
pub fn help(examples: &str) -> String {
    use std::fmt::Write as _;
    let mut text = format!("Examples:\n{examples}\n\nExit status:\n    0  success\n");
    for (status, meaning) in Status::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:>3}  {meaning}", status.code());
    }
    text
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the program ends with.
    pub status: Status,
    text: String,
}

impl Failure {
    /// What is wrong, and what to do about it.
    pub fn new(status: Status, what: impl fmt::Display, advice: &str) -> Self {
        Self::with_text(status, format!("{what}; {advice}"))
    }

    /// The command line or a configuration is wrong.
    pub fn usage(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Usage, what, advice)
    }

    /// The input cannot be taken.
    pub fn input(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Input, what, advice)
    }

    /// The members do not make a group.
    pub fn group(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Group, what, advice)
    }

    /// A member was lost, or stalled.
    pub fn peer_lost(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::PeerLost, what, advice)
    }

    /// The operating system refused something, or the program is wrong.
    pub fn other(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Other, what, advice)
    }

    /// With a text that says what to do already.
    pub fn with_text(status: Status, text: impl fmt::Display) -> Self {
        // File names and arguments are part of it, and may hold anything.
        let text = text.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { status, text }
    }

    /// An end that needs no words.
    pub const fn silent(status: Status) -> Self {
        Self { status, text: String::new() }
    }

    /// The operating system refused something that it seldom does.
    pub fn system(action: impl fmt::Display, error: &io::Error) -> Self {
        if is_exhausted(error) {
            let advice = "free some of what ran out, or raise its limit (df, ulimit -a)";
            return Self::new(Status::Resources, format_args!("{action}: {error}"), advice);
        }
        Self::other(format_args!("{action}: {error}"), "see the system's message, and try again")
    }

    /// The output cannot be written.
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

    /// The text, without the program's name.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Says it on standard error, unless it needs no words.
    pub fn report(&self) {
        use std::io::Write as _;
        if !self.text.is_empty() {
            // Without standard error there is no other place for it.
            let _ = writeln!(io::stderr(), "{}: {}", program(), self.text);
        }
    }
}

/// Whether something ran out, or has reached its limit.
pub fn is_exhausted(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    [StorageFull, QuotaExceeded, OutOfMemory, FileTooLarge].contains(&error.kind())
        || matches!(error.raw_os_error(), Some(code) if EXHAUSTED.contains(&code))
}

/// Errors of the system that mean that something ran out: too many processes or open files.
const EXHAUSTED: [i32; 3] = [
    rustix::io::Errno::AGAIN.raw_os_error(),
    rustix::io::Errno::MFILE.raw_os_error(),
    rustix::io::Errno::NFILE.raw_os_error(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_distinct_and_can_be_read_back() {
        for (index, (status, _)) in Status::ALL.iter().enumerate() {
            assert_eq!(Status::of(status.code()), *status);
            assert!(Status::ALL[..index].iter().all(|(other, _)| other.code() != status.code()));
        }
        assert_eq!(Status::of(99), Status::Other);
    }

    #[test]
    fn whatever_a_name_holds_the_text_stays_one_line() {
        let failure = Failure::input("cannot read a\nb\r\u{1b}[1m", "take another");
        assert_eq!(failure.text(), "cannot read a b  [1m; take another");
    }

    #[test]
    fn what_ran_out_is_told_from_what_went_wrong() {
        let status =
            |code| Failure::system("cannot start", &io::Error::from_raw_os_error(code)).status;
        use rustix::io::Errno;
        for errno in [Errno::NOSPC, Errno::MFILE, Errno::NOMEM, Errno::FBIG] {
            assert_eq!(status(errno.raw_os_error()), Status::Resources, "{errno}");
        }
        assert_eq!(status(rustix::io::Errno::NOEXEC.raw_os_error()), Status::Other);
    }

    #[test]
    fn help_lists_every_status() {
        let text = help("  tramontane demo");
        for (status, meaning) in Status::ALL {
            assert!(text.contains(&format!("{:>3}  {meaning}", status.code())));
        }
    }
}
