//! Names of fake devices and of the contexts opened on them.

use std::fmt;

use crate::devices::Wanted;

/// The name of a fake device, unique in the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName(pub(super) String);

impl DeviceName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the constraints of a member that must use this device.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted { device: Some(self.0.clone()), ..Wanted::default() }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The id of one opening of a device, by one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub(super) u64);
