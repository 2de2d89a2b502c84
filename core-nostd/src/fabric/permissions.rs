//! Regions whose owners decide which peers may write to them, for protocols in which the writer
//! changes (the logs of TRAM).
//!
//! A *region* in this module is memory of the process, outside the rows, that every view of the
//! process exposes. Its owner grants and revokes write permission for each peer; every peer may
//! read all of it. A peer that has permission writes with [`Fabric::post`]: all targets of a list
//! are in that region, and each source is in the row or in any region of the writer.
//!
//! Sources: TRAM (the leader writes its followers' logs under permission; TRM-3 to TRM-5), and Mu
//! (Aguilera et al., OSDI 2020), which compared access flags with a reset of the queue pair.
//!
//! Requirement: FAB-3.

use super::seam::Fabric;
use super::write::{Area, Region, Token};
use crate::ids::{Rank, ViewId};

/// An event that a fabric reports from [`Permissions::poll_permission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PermissionEvent {
    /// A peer's region rejected a write. The outstanding writes to that region are abandoned: their
    /// tokens do not complete, but parts of them may have landed. Until
    /// [`PermissionEvent::Restored`] is reported, posts to the region fail with
    /// [`ErrorKind::Revoked`](super::ErrorKind::Revoked).
    Denied {
        /// View of the peer. A rank is meaningful only within a view, and many views may be open.
        view: ViewId,
        /// Owner of the region.
        peer: Rank,
        /// The region.
        region: Region,
    },
    /// Posts to a peer's region are possible again, or possible for the first time after one was
    /// refused. Whether the permission has been granted becomes known only when a write is posted.
    Restored {
        /// View of the peer.
        view: ViewId,
        /// Owner of the region.
        peer: Rank,
        /// The region.
        region: Region,
    },
}

/// A fabric on which the owner of a region decides which peers may write to it.
///
/// # Requirements on implementations
/// - Initially, no peer may write to any region.
/// - After [`revoke`](Permissions::revoke) has returned, no write by that peer lands in the region,
///   not even one that was in flight.
/// - A write without permission harms only the connection between the two nodes for that region;
///   rows and other regions continue to work.
/// - No call blocks.
pub trait Permissions: Fabric {
    /// Returns the maximum number of bytes in one list to a region, summed over the list's writes,
    /// and in one read. A longer list fails with
    /// [`ErrorKind::OutOfRange`](super::ErrorKind::OutOfRange). The maximum is at least the size of
    /// a log entry with its header and its control line.
    fn region_list_bytes_max(&self) -> usize {
        self.capabilities().write_bytes_max
    }

    /// Grants a peer permission to write to a local region. Writes that the peer posts after it has
    /// learned of this (from the protocol) land. If the peer's fabric must learn of the permission
    /// first, or the connection must be set up again, the writes fail with
    /// [`ErrorKind::QueueFull`](super::ErrorKind::QueueFull) or `Revoked` until then;
    /// [`PermissionEvent::Restored`] then tells the peer that it may write. A write that the peer
    /// posts under an earlier permission that has since been revoked may be
    /// [`PermissionEvent::Denied`] once.
    ///
    /// # Errors
    /// Fails with `OutOfRange` for a region or a peer that does not exist, with `PeerLost` for a
    /// lost peer, and with `Other` if the device has no more permissions to grant.
    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), Self::Error>;

    /// Revokes a peer's permission. Idempotent.
    ///
    /// # Errors
    /// Fails as [`grant`](Permissions::grant) does. After any other error the peer is cut, so none
    /// of its writes lands either.
    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), Self::Error>;

    /// Returns whether a peer may write to a local region now.
    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool;

    /// Reads a range of a peer's region into a local region.
    /// [`Event::Completed`](super::Event::Completed) reports that the range has arrived; its cells
    /// may be torn. Outstanding reads may be carried out in any order.
    ///
    /// # Errors
    /// Fails as [`Fabric::post`] does.
    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Returns the next permission event, if any.
    fn poll_permission(&mut self) -> Option<PermissionEvent>;
}
