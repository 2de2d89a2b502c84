//! The exit statuses of errors of shards.

use std::io;

use crate::exit::{Failure, Status};
use tramontane_runtime::rdma::NoFabric;
use tramontane_runtime::shards::{
    ClientError, DescriptionError, FolderError, NoSuchPlace, StartError,
};

impl From<DescriptionError> for Failure {
    fn from(error: DescriptionError) -> Self {
        match error {
            // The library does not know the programs' options.
            DescriptionError::Parse { .. } => Self::with_text(
                Status::Usage,
                format_args!("{error} (tramontane shards --example-config base)"),
            ),
            error => Self::with_text(Status::Usage, error),
        }
    }
}

impl From<NoSuchPlace> for Failure {
    fn from(error: NoSuchPlace) -> Self {
        Self::with_text(Status::Usage, error)
    }
}

/// Converts the error of a process that did not become a replica or a client.
impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        use StartError as E;
        let status = match error {
            E::Description(error) => return error.into(),
            E::NoSuchPlace(error) => return error.into(),
            E::ControlEndpoints(error) => return error.into(),
            E::Fabric(NoFabric::Rdma(error)) => return error.into(),
            E::Fabric(NoFabric::Io(error)) | E::Io(error) => {
                return Self::system("cannot start", &error);
            }
            E::SharedMemory(error) => return error.into(),
            E::Stopped(stopped) => return stopped.into(),
            E::Cancelled => return Self::silent(Status::Interrupted),
            E::Listen { ref source, .. } if source.kind() != io::ErrorKind::AddrInUse => {
                Status::Usage
            }
            E::Listen { .. } | E::Refused { .. } | E::NotMet { .. } | E::NoSeat(_) => Status::Group,
            E::Folder(FolderError::Open(error)) => return error.into(),
            E::Folder(FolderError::Write(error)) => return error.into(),
            E::Folder(FolderError::Folder { .. } | FolderError::Read(_)) => Status::Resources,
            E::Folder(_) => Status::Usage,
            E::GroupLost { .. } => Status::Out,
            E::MessagesTooLong { .. } => Status::Usage,
            E::NoMemory(_) | E::Descriptors { .. } => Status::Resources,
            E::StateRefused(_) => {
                let advice = "check the file system of --log, and start this replica again";
                return Self::new(Status::Resources, error, advice);
            }
            error => return Self::other(error, "please report this"),
        };
        Self::with_text(status, error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Closed | ClientError::Outdated(_) => Self::with_text(Status::Out, error),
            ClientError::Refused { .. } => Self::with_text(Status::Group, error),
            ClientError::NoMemory(_) => Self::new(
                Status::Resources,
                error,
                "free memory or raise the limit of open files, and try again",
            ),
            error => Self::other(error, "please report this"),
        }
    }
}
