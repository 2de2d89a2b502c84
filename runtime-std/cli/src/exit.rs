//! How the program ends: its exit statuses, and errors as one line that says what to do.

use std::fmt;
use std::io;

use tramontane_control::MeshError;
use tramontane_core::layout::LayoutError;

use tramontane_bench::BenchError;
use tramontane_local::crew::{AttachError, CrewError};
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::{Interrupted, WatchError};
use tramontane_runtime::fabric::MemoryError;
use tramontane_runtime::group::{ControlEndpointsError, DataError, DescriptionError, StartError};
use tramontane_runtime::member::Stopped;
use tramontane_runtime::rdma::{ClearNotAllowed, NoFabric};
use tramontane_runtime::shared_memory::Error as SharedMemoryError;

/// The exit statuses: the one place where they are given out. Their numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
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
    /// Interrupted: 128 and the signal's number, as shells have it.
    Interrupted = 130,
    /// The reader of the output has gone.
    OutputClosed = 141,
    /// Asked to end.
    Terminated = 143,
}

impl Status {
    /// All of them, for the help and to read a worker's.
    const ALL: [(Self, &'static str); 13] = [
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
        (Self::Interrupted, "interrupted (SIGINT)"),
        (Self::OutputClosed, "the output was closed"),
        (Self::Terminated, "terminated (SIGTERM)"),
    ];

    /// The number.
    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    /// The status of that number.
    pub(super) fn of(code: u8) -> Self {
        let found = Self::ALL.iter().find(|(status, _)| status.code() == code);
        found.map_or(Self::Other, |(status, _)| *status)
    }
}

/// The end of a command's help: examples, then what the exit statuses mean.
pub(super) fn help(examples: &str) -> String {
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
pub(super) struct Failure {
    pub(super) status: Status,
    text: String,
}

impl Failure {
    /// What is wrong, and what to do about it.
    pub(super) fn new(status: Status, what: impl fmt::Display, advice: &str) -> Self {
        Self::with_text(status, format!("{what}; {advice}"))
    }

    /// The command line or a configuration is wrong.
    pub(super) fn usage(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Usage, what, advice)
    }

    /// The input cannot be taken.
    pub(super) fn input(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Input, what, advice)
    }

    /// The members do not make a group.
    pub(super) fn group(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Group, what, advice)
    }

    /// A member was lost, or stalled.
    pub(super) fn peer_lost(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::PeerLost, what, advice)
    }

    /// The operating system refused something, or the program is wrong.
    pub(super) fn other(what: impl fmt::Display, advice: &str) -> Self {
        Self::new(Status::Other, what, advice)
    }

    /// With a text that says what to do already.
    pub(super) fn with_text(status: Status, text: impl fmt::Display) -> Self {
        // File names and arguments are part of it, and may hold anything.
        let text = text.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { status, text }
    }

    /// An end that needs no words.
    pub(super) const fn silent(status: Status) -> Self {
        Self { status, text: String::new() }
    }

    /// The operating system refused something that it seldom does.
    pub(super) fn system(action: impl fmt::Display, error: &io::Error) -> Self {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull};
        let exhausted = matches!(error.kind(), StorageFull | QuotaExceeded | OutOfMemory)
            || matches!(error.raw_os_error(), Some(code) if EXHAUSTED.contains(&code));
        if exhausted {
            let advice = "free some of what ran out, or raise its limit (df, ulimit -a)";
            return Self::new(Status::Resources, format_args!("{action}: {error}"), advice);
        }
        Self::other(format_args!("{action}: {error}"), "see the system's message, and try again")
    }

    /// The output cannot be written.
    pub(super) fn output(error: &io::Error) -> Self {
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
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Says it on standard error, unless it needs no words.
    pub(super) fn report(&self) {
        use std::io::Write as _;
        if !self.text.is_empty() {
            // Without standard error there is no other place for it.
            let _ = writeln!(io::stderr(), "tramontane: {}", self.text);
        }
    }
}

/// Errors of the system that mean that something ran out: too many processes or open files.
const EXHAUSTED: [i32; 3] = [
    rustix::io::Errno::AGAIN.raw_os_error(),
    rustix::io::Errno::MFILE.raw_os_error(),
    rustix::io::Errno::NFILE.raw_os_error(),
];

/// Makes an error a failure, by a function.
macro_rules! failures {
    ($($error:ty => $failure:expr;)+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let failure: fn($error) -> Self = $failure;
                failure(error)
            }
        })+
    };
}

failures! {
    ClearNotAllowed => |error| Self::with_text(Status::Usage, error);
    tramontane_client::AddressError => |error| Self::with_text(Status::Usage, error);
    DescriptionError => |error| Self::with_text(Status::Usage, error);
    WatchError => |error| Self::system("cannot watch for signals", &error.0);
    AttachError => |error| {
        Self::usage(error, "let the command that needs this process start it")
    };
    LayoutError => |error| {
        let what = format_args!("the group cannot be laid out: {error}");
        Self::usage(what, "correct the configuration")
    };
    Interrupted => |interrupted| Self::silent(match interrupted {
        Interrupted::Interrupt => Status::Interrupted,
        Interrupted::Terminate => Status::Terminated,
    });
}

impl From<SharedMemoryError> for Failure {
    fn from(error: SharedMemoryError) -> Self {
        use SharedMemoryError as E;
        let status = match error {
            E::BadName(_) | E::NotAMember { .. } | E::OtherMember { .. } => Status::Usage,
            E::NoMemory { .. }
            | E::CannotSeal
            | E::NoSpace { .. }
            | E::NotPermitted { .. }
            | E::TooManyRegions(_) => Status::Resources,
            E::DuplicateId { .. }
            | E::WrongDigest { .. }
            | E::WrongVersion { .. }
            | E::Busy { .. }
            | E::ViewIsThere { .. }
            | E::HasLeft { .. } => Status::Group,
            E::Cancelled => Status::Interrupted,
            E::Io { ref action, ref path, ref source } => {
                return Self::system(format_args!("{action} {}", path.display()), source);
            }
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::SharedMemory(error) => error.into(),
            MemoryError::Verbs(tramontane_verbs::NoView::Device(error)) => error.into(),
            error => Self::with_text(Status::Resources, error),
        }
    }
}

impl From<tramontane_verbs::check::CheckError> for Failure {
    fn from(error: tramontane_verbs::check::CheckError) -> Self {
        use tramontane_verbs::check::CheckError as E;
        match error {
            E::Device(error) => error.into(),
            error => Self::with_text(Status::Group, error),
        }
    }
}

impl From<LocalError> for Failure {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::NoDevice(_) | LocalError::Description(_) => {
                Self::with_text(Status::Usage, error)
            }
            LocalError::Verbs(error) => error.into(),
            LocalError::SharedMemory(error) => error.into(),
            LocalError::Sockets(error) => Self::system("cannot listen on the loopback", &error),
        }
    }
}

impl From<CrewError> for Failure {
    fn from(error: CrewError) -> Self {
        match error {
            CrewError::Start(error) => Self::system("cannot start a process", &error),
            CrewError::Interrupted(interrupted) => interrupted.into(),
            CrewError::Ended { .. } | CrewError::TimedOut { .. } => {
                Self::with_text(Status::Other, error)
            }
            CrewError::Unreachable { .. } => {
                Self::peer_lost(error, "find out what ended it, and start again")
            }
        }
    }
}

impl From<ControlEndpointsError> for Failure {
    fn from(error: ControlEndpointsError) -> Self {
        match error {
            ControlEndpointsError::Key(tramontane_control::KeyError::Io { .. }) => Self::usage(
                format_args!("cannot read the key: {error}"),
                "set key_file to a file that you may read",
            ),
            error => Self::with_text(Status::Usage, error),
        }
    }
}

/// The status of a node that did not become a member.
impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        use StartError as E;
        let status = match error {
            E::ControlEndpoints(error) => return error.into(),
            E::Fabric(NoFabric::Rdma(error)) => return error.into(),
            E::Fabric(NoFabric::Io(error)) | E::Io(error) => {
                return Self::system("cannot start", &error);
            }
            E::SharedMemory(error) => return error.into(),
            E::Meet(error) => return error.into(),
            E::Stopped(stopped) => return stopped.into(),
            E::Data(error) => return error.into(),
            E::Cancelled => return Self::silent(Status::Interrupted),
            E::State(_) | E::UnknownNode { .. } | E::Layout(_) => Status::Usage,
            E::Listen { ref source, .. } if source.kind() != io::ErrorKind::AddrInUse => {
                Status::Usage
            }
            E::Listen { .. }
            | E::NotLetIn { .. }
            | E::NobodyRuns { .. }
            | E::OtherConfiguration { .. }
            | E::NotFormed(_)
            | E::NotRestarted(_)
            | E::FixedRuns { .. }
            | E::NotReady { .. }
            | E::Refused { .. } => Status::Group,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::PeerLost { .. } => Self::peer_lost(stopped, "start all members again"),
            Stopped::Halted { .. } => {
                Self::new(Status::Out, stopped, "start this node again: it joins as a new process")
            }
            Stopped::NotDurable(_) => Self::with_text(Status::Resources, stopped),
            Stopped::GroupLost(_) | Stopped::Outdated(_) => Self::with_text(Status::Out, stopped),
            Stopped::Refused(..) => Self::with_text(Status::Group, stopped),
            Stopped::StateRefused(_) => Self::new(
                Status::Resources,
                stopped,
                "look at the file system of --log, and start this replica again",
            ),
            Stopped::NoMemory(_) | Stopped::NoState(_) => Self::new(
                Status::Resources,
                stopped,
                "free memory or disk space, and start this node again",
            ),

            stopped => Self::other(stopped, "please report this"),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Layout(error) => error.into(),
            BenchError::Start(error) => error.into(),
            BenchError::SharedMemory(error) => error.into(),
            BenchError::Place(error) => error.into(),
            BenchError::Crew(error) => error.into(),
            BenchError::Attach(error) => error.into(),
            BenchError::Signals(error) => error.into(),
            BenchError::Stopped(stopped) => stopped.into(),
            BenchError::Broken(what) => Self::new(Status::Disagreement, what, "please report this"),
            BenchError::Arguments(what) => Self::usage(what, "see 'tramontane bench --help'"),
            BenchError::Output(error) => Self::output(&error),
            error @ BenchError::Disk { .. } => {
                Self::new(Status::Resources, error, "give a folder on the disk with --folder")
            }
            error @ (BenchError::Setup(_) | BenchError::Send(_) | BenchError::Probe) => {
                Self::other(error, "see 'tramontane bench --help'")
            }
        }
    }
}

/// The status of a node whose logs cannot be used.
impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match error {
            DataError::Open(error) => error.into(),
            DataError::Write(error) => error.into(),
            DataError::OtherNode { .. } => Self::with_text(Status::Group, error),
            DataError::Folder { .. } | DataError::SetAside { .. } => {
                Self::with_text(Status::Resources, error)
            }
            error => Self::with_text(Status::Usage, error),
        }
    }
}

/// The status of a client that no member takes.
impl From<tramontane_client::OpenError> for Failure {
    fn from(error: tramontane_client::OpenError) -> Self {
        use tramontane_client::{ClientRefusal as R, OpenError as E};
        let status = match &error {
            E::NoAddress | E::KeyNeeded(_) | E::Name => Status::Usage,
            E::Refused(R::NotAllowed | R::NoSubgroup | R::NotLogged) => Status::Usage,
            E::Refused(R::LeaseOver | R::TooSlow) => Status::Out,
            E::Refused(_) | E::NoMember { .. } | E::Hopeless(_) => Status::Group,
            E::System(_) | E::StateTooLarge(_) => Status::Resources,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

/// The status of lines that were not published.
impl From<tramontane_client::PublishError> for Failure {
    fn from(error: tramontane_client::PublishError) -> Self {
        use tramontane_client::PublishError as E;
        let status = match &error {
            E::TooLong { .. } => Status::Input,
            E::Refused(why) => return tramontane_client::OpenError::Refused(*why).into(),
            E::Full | E::TimeUp | E::NoMember { .. } | E::Lost { .. } => Status::PeerLost,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

/// The status of a subscriber to which nothing more comes.
impl From<tramontane_client::SubscribeError> for Failure {
    fn from(error: tramontane_client::SubscribeError) -> Self {
        match error {
            tramontane_client::SubscribeError::Open(error) => error.into(),
            error => Self::with_text(Status::PeerLost, error),
        }
    }
}

/// The status of a log that is not opened.
impl From<tramontane_log::OpenError> for Failure {
    fn from(error: tramontane_log::OpenError) -> Self {
        use tramontane_log::OpenError as O;
        let status = match &error {
            O::NoLog { .. } => Status::Input,
            O::InUse { .. } | O::OtherGroup { .. } | O::NewerFormat { .. } => Status::Group,
            O::ReadOnly { .. } | O::MetadataLost { .. } | O::NoSpace { .. } | O::Sync { .. } => {
                Status::Resources
            }
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

/// The status of a log that takes nothing more.
impl From<tramontane_log::WriteError> for Failure {
    fn from(error: tramontane_log::WriteError) -> Self {
        use tramontane_log::WriteError as W;
        let status = match &error {
            W::ReadOnly { .. } | W::NoSpace { .. } | W::Sync { .. } | W::Failed { .. } => {
                Status::Resources
            }
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

/// The status of records that are not read.
impl From<tramontane_log::ReadError> for Failure {
    fn from(error: tramontane_log::ReadError) -> Self {
        use tramontane_log::ReadError as R;
        let status = match &error {
            R::OutOfRange { .. } => Status::Usage,
            R::Damaged { .. } | R::SnapshotDamaged { .. } | R::NoSnapshot { .. } => Status::Input,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

/// The status of members on a network that did not meet.
impl From<MeshError> for Failure {
    fn from(error: MeshError) -> Self {
        use MeshError as M;
        let status = match &error {
            M::Addresses { .. } | M::KeyNeeded { .. } | M::Listen { .. } | M::TooLong { .. } => {
                Status::Usage
            }
            M::Io { action, source } => {
                return Self::system(format_args!("cannot {action}"), source);
            }
            M::Cancelled => Status::Interrupted,
            _ => Status::Group,
        };
        Self::with_text(status, error)
    }
}

/// The status of what RDMA refuses.
impl From<tramontane_verbs::JoinError> for Failure {
    fn from(error: tramontane_verbs::JoinError) -> Self {
        use tramontane_verbs::JoinError as E;
        use tramontane_verbs::devices::ChoiceError as C;
        let status = match &error {
            E::Choice(
                C::NoDevice
                | C::NoActivePort { .. }
                | C::NoGid { .. }
                | C::NoLid { .. }
                | C::OtherTransport { .. },
            )
            | E::NoLibrary(_)
            | E::DeviceGone { .. }
            | E::NotPermitted { .. }
            | E::NoWriteOrder { .. }
            | E::NotVisible { .. }
            | E::NotDenied { .. }
            | E::Device { .. } => Status::Device,
            E::Choice(_) | E::NoSuchVector { .. } | E::BadOptions(_) => Status::Usage,
            E::NoAnswer { .. } => Status::Group,
            E::LockedMemory { .. } | E::TooMany { .. } => Status::Resources,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    }
}

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
        for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::MFILE, rustix::io::Errno::NOMEM]
        {
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
