//! Corosync's error numbers, as `corosync/corotypes.h` has them.

use std::ffi::c_uint;

/// What a call to the library answered, where it was not `CS_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({})", self.name(), self.0)]
pub struct CorosyncError(c_uint);

/// `CS_OK`.
const OK: c_uint = 1;

impl CorosyncError {
    /// Nothing happened: come back later.
    pub const TRY_AGAIN: Self = Self(6);
    /// The connection to the daemon failed.
    pub const LIBRARY: Self = Self(2);

    /// The name in Corosync's headers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            2 => "CS_ERR_LIBRARY",
            3 => "CS_ERR_VERSION",
            4 => "CS_ERR_INIT",
            5 => "CS_ERR_TIMEOUT",
            6 => "CS_ERR_TRY_AGAIN",
            7 => "CS_ERR_INVALID_PARAM",
            8 => "CS_ERR_NO_MEMORY",
            9 => "CS_ERR_BAD_HANDLE",
            10 => "CS_ERR_BUSY",
            11 => "CS_ERR_ACCESS",
            12 => "CS_ERR_NOT_EXIST",
            13 => "CS_ERR_NAME_TOO_LONG",
            14 => "CS_ERR_EXIST",
            16 => "CS_ERR_INTERRUPT",
            18 => "CS_ERR_NO_RESOURCES",
            19 => "CS_ERR_NOT_SUPPORTED",
            22 => "CS_ERR_MESSAGE_ERROR",
            23 => "CS_ERR_QUEUE_FULL",
            26 => "CS_ERR_TOO_BIG",
            _ => "an error of Corosync's",
        }
    }

    /// Whether a send that ends so surely had no effect.
    ///
    /// A long message whose pieces were interrupted by a change of membership counts: its last
    /// piece was never sent, and receivers drop what they had of it. A lost connection says
    /// nothing.
    #[must_use]
    pub const fn is_definite(self) -> bool {
        !matches!(self.0, 2 | 5 | 22)
    }
}

/// `CS_OK` or the error.
pub(super) const fn outcome(code: c_uint) -> Result<(), CorosyncError> {
    if code == OK { Ok(()) } else { Err(CorosyncError(code)) }
}
