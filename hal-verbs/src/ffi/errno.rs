//! Results of calls, which are error numbers.

use std::io;

/// Returns the `errno` of the previous call.
pub(super) fn last_error() -> io::Error {
    io::Error::last_os_error()
}

/// Converts the result of a call that returns an error number, or returns -1 and sets `errno`.
pub(super) fn check(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        -1 => Err(last_error()),
        number => Err(io::Error::from_raw_os_error(number.abs())),
    }
}
