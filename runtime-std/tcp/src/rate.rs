//! Limits on the send rate of a connection. The kernel spaces the packets by itself (`tcp(7)` needs
//! no queueing discipline for it).

use std::io;
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd as _;

/// Limits traffic on a connection to `bytes_per_s`.
///
/// # Errors
/// Fails with the system's error.
pub(super) fn limit(stream: &TcpStream, bytes_per_s: NonZeroU64) -> io::Result<()> {
    let rate = bytes_per_s.get();
    let bytes = libc::socklen_t::try_from(size_of_val(&rate)).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open while `stream` is borrowed. The kernel reads the size of
    // `rate`, which outlives the call.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            bytes,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
