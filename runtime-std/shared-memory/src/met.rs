//! Processes that were met over a connection, before their files are open here.
//!
//! A process that dies in between has left nothing else that shows its death: its file was never
//! opened, and a file that cannot be found may just be created again. So each process keeps the
//! connection until it has the peer's row. A peer sends its row only after it has opened this
//! process's file. Therefore, a peer that is not found here has not received this process's row,
//! and its end of the connection closes only with the peer.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tramontane_core::ids::NodeId;

/// A process that was met, and the connection over which it was met.
#[derive(Debug)]
pub(super) struct MetProcess {
    pub(super) node: NodeId,
    pub(super) connection: OwnedFd,
}

impl MetProcess {
    /// Returns whether the other end has closed the connection, which its owner's death also does.
    /// Takes a system call. If it fails, the process counts as alive.
    pub(super) fn has_ended(&self) -> bool {
        // A hang-up is reported in any case. Unread data does not hide it.
        let mut descriptors = [PollFd::new(&self.connection, PollFlags::empty())];
        let no_wait = Timespec::default();
        poll(&mut descriptors, Some(&no_wait)).is_ok()
            && descriptors[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}
