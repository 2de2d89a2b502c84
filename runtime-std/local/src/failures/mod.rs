//! The conversion of each layer's errors to an exit status and a line that names the remedy.

#[cfg(feature = "dds")]
mod dds;
mod shards;

use std::io;

use crate::crew::{AttachError, CrewError};
use crate::group::LocalError;
use crate::interrupt::{Interrupted, WatchError};
use tramontane_control::MeshError;
use tramontane_core::layout::LayoutError;
use tramontane_core::view::Halt;
use tramontane_runtime::fabric::MemoryError;
use tramontane_runtime::group::{
    ControlEndpointsError, DataError, DescriptionError, StartError, StateError,
};
use tramontane_runtime::member::Stopped;
use tramontane_runtime::rdma::{ClearNotAllowed, NoFabric};
use tramontane_runtime::shared_memory::Error as SharedMemoryError;

use crate::exit::{Failure, Status, is_exhausted};

/// Implements the conversion of an error to a failure, given a function.
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
    DescriptionError => |error| match error {
        // The library does not know the programs' options.
        DescriptionError::Parse { .. } => {
            Self::with_text(Status::Usage, format_args!("{error} (tramontane node --example-config)"))
        }
        error => Self::with_text(Status::Usage, error),
    };
    WatchError => |error| Self::system("cannot watch for signals", &error.0);
    AttachError => |error| {
        Self::usage(error, "run the command that starts this process")
    };
    LayoutError => |error| {
        let what = format_args!("the group has no valid memory layout: {error}");
        Self::usage(what, "correct the configuration")
    };
    Interrupted => |interrupted| Self::silent(match interrupted {
        Interrupted::Interrupt => Status::Interrupted,
        Interrupted::Terminate => Status::Terminated,
    });
    SharedMemoryError => |error| {
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
    };
    MemoryError => |error| match error {
        MemoryError::SharedMemory(error) => error.into(),
        MemoryError::Verbs(tramontane_verbs::NoView::Device(error)) => error.into(),
        error => Self::with_text(Status::Resources, error),
    };
    tramontane_verbs::check::CheckError => |error| {
        use tramontane_verbs::check::CheckError as E;
        match error {
            E::Device(error) => error.into(),
            error => Self::with_text(Status::Group, error),
        }
    };
    LocalError => |error| match error {
        LocalError::NoDevice(_) | LocalError::Description(_) => {
            Self::with_text(Status::Usage, error)
        }
        LocalError::Verbs(error) => error.into(),
        LocalError::SharedMemory(error) => error.into(),
        LocalError::Sockets(error) => Self::system("cannot listen on the loopback", &error),
    };
    CrewError => |error| match error {
        CrewError::Start(error) => Self::system("cannot start a process", &error),
        CrewError::Interrupted(interrupted) => interrupted.into(),
        CrewError::Ended { .. } | CrewError::TimedOut { .. } => {
            Self::with_text(Status::Other, error)
        }
        CrewError::Unreachable { .. } => {
            Self::peer_lost(error, "check its output and the system log, and start again")
        }
    };
    ControlEndpointsError => |error| match error {
        ControlEndpointsError::Key(tramontane_control::KeyError::Io { .. }) => Self::usage(
            format_args!("cannot read the key: {error}"),
            "set key_file to a readable file",
        ),
        error => Self::with_text(Status::Usage, error),
    };
    // Converts the error of a node that did not become a member.
    StartError => |error| {
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
            E::Listen { address, source, .. } if is_exhausted(&source) => {
                return Self::system(format_args!("cannot listen at {address}"), &source);
            }
            E::State(StateError::Io { path, source }) if is_exhausted(&source) => {
                let what = format_args!("cannot keep the node's state in {}", path.display());
                return Self::system(what, &source);
            }
            E::State(StateError::Io { ref source, .. }) if is_of_the_folder(source) => {
                Status::Usage
            }
            E::State(StateError::Io { .. }) | E::DiskFailed(_) => Status::Resources,
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
            | E::NothingOfGroup { .. }
            | E::FixedRuns { .. }
            | E::NotReady { .. }
            | E::Refused { .. } => Status::Group,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
    Stopped => |stopped| match stopped {
        Stopped::PeerLost { .. } => Self::peer_lost(stopped, "start all members again"),
        Stopped::Halted { why: Halt::NoMajority, .. } => Self::new(
            Status::Out,
            stopped,
            "start this node and the others that ended again, with the same commands; each \
             reports which nodes it is waiting for",
        ),
        Stopped::Halted { .. } => {
            Self::new(Status::Out, stopped, "start this node again; it joins as a new process")
        }
        Stopped::NotDurable(_) => Self::with_text(Status::Resources, stopped),
        Stopped::GroupLost(_) | Stopped::Outdated(_) | Stopped::DiskOlder(_) => {
            Self::with_text(Status::Out, stopped)
        }
        Stopped::Refused(..) => Self::with_text(Status::Group, stopped),
        Stopped::StateRefused(_) => Self::new(
            Status::Resources,
            stopped,
            "check the file system of --log, and start this replica again",
        ),
        Stopped::NoMemory(_) | Stopped::NoState(_) => Self::new(
            Status::Resources,
            stopped,
            "free memory or disk space, and start this node again",
        ),

        stopped => Self::other(stopped, "please report this"),
    };
    // Converts the error of a node whose logs cannot be used.
    DataError => |error| match error {
        DataError::Open(error) => error.into(),
        DataError::Write(error) => error.into(),
        DataError::OtherNode { .. } => Self::with_text(Status::Group, error),
        DataError::Folder { .. } | DataError::SetAside { .. } => {
            Self::with_text(Status::Resources, error)
        }
        error => Self::with_text(Status::Usage, error),
    };
    // Converts the error of a client that no member accepts.
    tramontane_client::ConnectError => |error| {
        use tramontane_client::{ClientRefusal as R, ConnectError as E};
        let status = match &error {
            E::NoAddress | E::KeyNeeded(_) | E::Name => Status::Usage,
            E::Refused(R::NotAllowed | R::NoSubgroup | R::NotLogged) => Status::Usage,
            E::Refused(R::LeaseOver | R::TooSlow) => Status::Out,
            E::Refused(_) | E::NoMember { .. } | E::Hopeless(_) => Status::Group,
            E::System(_) | E::StateTooLarge(_) => Status::Resources,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
    // Converts the error of lines that were not published.
    tramontane_client::PublishError => |error| {
        use tramontane_client::PublishError as E;
        let status = match &error {
            E::TooLong { .. } => Status::Input,
            E::Refused(why) => return tramontane_client::ConnectError::Refused(*why).into(),
            E::Full | E::TimeUp | E::NoMember { .. } | E::Lost { .. } => Status::PeerLost,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
    // Converts the error of a subscriber that receives nothing more.
    tramontane_client::SubscribeError => |error| match error {
        tramontane_client::SubscribeError::Open(error) => error.into(),
        error => Self::with_text(Status::PeerLost, error),
    };
    // Converts the error of a log that cannot be opened.
    tramontane_log::OpenLogError => |error| {
        use tramontane_log::OpenLogError as O;
        let status = match &error {
            O::NoLog { .. } | O::MetadataLost { .. } => Status::Input,
            O::InUse { .. } | O::OtherGroup { .. } | O::NewerFormat { .. } => Status::Group,
            O::ReadOnly { .. } | O::NoSpace { .. } | O::Sync { .. } => Status::Resources,
            O::Io { source, .. } if is_exhausted(source) => Status::Resources,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
    // Converts the error of a log that can no longer be written.
    tramontane_log::WriteError => |error| {
        use tramontane_log::WriteError as W;
        let status = match &error {
            W::ReadOnly { .. } | W::NoSpace { .. } | W::Sync { .. } | W::Failed { .. } => {
                Status::Resources
            }
            W::Io { source, .. } if is_exhausted(source) => Status::Resources,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
    // Converts the error of unreadable records.
    tramontane_log::ReadError => |error| {
        use tramontane_log::ReadError as R;
        let status = match &error {
            R::OutOfRange { .. } => Status::Usage,
            R::Damaged { .. } | R::SnapshotDamaged { .. } | R::NoSnapshot { .. } => Status::Input,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
    // Converts the error of members on a network that did not meet.
    MeshError => |error| {
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
    };
    // Converts an error of RDMA.
    tramontane_verbs::JoinError => |error| {
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
            | E::NotDenied { .. }
            | E::Device { .. } => Status::Device,
            E::Choice(_) | E::NoSuchVector { .. } | E::BadOptions(_) => Status::Usage,
            E::NoAnswer { .. } => Status::Group,
            E::LockedMemory { .. }
            | E::TooMany { .. }
            | E::CgroupLimit { .. }
            | E::CgroupRefused { .. } => Status::Resources,
            _ => Status::Other,
        };
        Self::with_text(status, error)
    };
}

/// Returns whether the remedy is another folder, rather than a repaired disk.
fn is_of_the_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
