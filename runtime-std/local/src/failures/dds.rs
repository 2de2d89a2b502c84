//! The exit statuses of errors of DDS topics.

use tramontane_dds::DdsError;

use crate::exit::{Failure, Status};

impl From<DdsError> for Failure {
    fn from(error: DdsError) -> Self {
        match error {
            DdsError::Start(error) => error.into(),
            DdsError::Ended(stopped) => stopped.into(),
            DdsError::Description(error) => error.into(),
            DdsError::System(error) => Self::system("cannot start", &error),
            DdsError::Outside(error) => error.into(),
            DdsError::NotPublished(error) => error.into(),
            DdsError::Timeout(_) | DdsError::TopicDeleted => {
                Self::with_text(Status::PeerLost, error)
            }
            DdsError::NoPlace(_) => Self::with_text(Status::Resources, error),
            error => Self::with_text(Status::Usage, error),
        }
    }
}
