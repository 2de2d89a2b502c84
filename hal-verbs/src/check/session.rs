//! The two ends of a check, which work in lockstep.

use std::io;

use super::connection::CheckConnection;
use super::finding::FindingVerdict;
use super::talk::Talk;
use crate::site::{JoinError, Site};

/// The reason why the checks could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no device, or it refused.
    #[error(transparent)]
    Device(#[from] JoinError),
    /// The other end has exited, or has sent an unexpected message.
    #[error("the other end stopped: {0}; see its error message, and start both ends again")]
    Talk(#[from] io::Error),
    /// The other end has another version or other options.
    #[error(
        "the other end runs different checks; run the same version with the same number of rounds \
         on both hosts"
    )]
    Mismatch,
    /// The other end failed and prints the reason itself.
    #[error("the other end cannot connect; see its error message, and start both ends again")]
    OtherEnd,
    /// The two ends could not be members of one group.
    #[error(
        "the devices keep the order of writes at one end, and the fabric keeps it at the other, so \
         such members reject each other; set the same RDMA order at both ends: writes if all \
         devices keep the order, otherwise none"
    )]
    WriteOrders,
}

/// A check as seen by one of its two ends.
pub(super) struct Session<'s> {
    pub(super) site: &'s Site,
    pub(super) talk: &'s mut dyn Talk,
    pub(super) rounds: u64,
}

/// A verdict and its reason.
pub(super) type Judged = Result<(FindingVerdict, String), CheckError>;

impl Session<'_> {
    /// Creates a new connection, and brings it up at both ends.
    pub(super) fn connect(&mut self) -> Result<CheckConnection, CheckError> {
        let mut connection = CheckConnection::new(self.site)?;
        self.talk.tell(&connection.card())?;
        let card = self.talk.hear()?;
        let came = connection.connect(self.site, &card);
        // No end writes before both are up, and an end that fails reports it.
        self.talk.tell(&[u8::from(came.is_ok())])?;
        let other = self.talk.hear()?;
        came?;
        match other.as_slice() {
            [1] => Ok(connection),
            [0] => Err(CheckError::OtherEnd),
            _ => Err(CheckError::Mismatch),
        }
    }

    /// Waits until the other end has reached the same point.
    pub(super) fn meet(&mut self) -> Result<(), CheckError> {
        self.tell_number(MEET)?;
        if self.hear_number()? == MEET { Ok(()) } else { Err(CheckError::Mismatch) }
    }

    pub(super) fn tell_number(&mut self, number: u64) -> Result<(), CheckError> {
        Ok(self.talk.tell(&number.to_le_bytes())?)
    }

    pub(super) fn hear_number(&mut self) -> Result<u64, CheckError> {
        let bytes = self.talk.hear()?;
        bytes.try_into().map(u64::from_le_bytes).map_err(|_| CheckError::Mismatch)
    }
}

/// The frame that both ends send when they meet.
const MEET: u64 = 0x6d65_6574;
