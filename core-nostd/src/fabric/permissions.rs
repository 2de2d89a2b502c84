//! Regions whose owner says which peers may write to them: for protocols in which the writer
//! changes (the logs of TRAM).
//!
//! A *region* here is memory of a process, beside its rows, which every view of that process shows.
//! Its owner grants and revokes the right to write, peer by peer and region by region; every peer
//! may read all of it. A peer that has the right posts to it with [`Fabric::post`]: the targets of
//! a list are all in that region, each source in the row or in any own region.
//!
//! Sources: TRAM (the leader writes its followers' logs under permission; TRM-3 to TRM-5), and Mu
//! (Aguilera et al., OSDI 2020), which measured access flags against a reset of the queue pair.
//!
//! Requirement: FAB-3.

use super::seam::Fabric;
use super::write::{Area, Region, Token};
use crate::ids::{Rank, ViewId};

/// What a fabric reports from [`Permissions::poll_permission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PermissionEvent {
    /// A write to a peer's region was not taken. What was under way to that region is given up: its
    /// tokens do not complete, and parts of it may have landed. Until
    /// [`PermissionEvent::Restored`], posts to it are
    /// [`ErrorKind::Revoked`](super::ErrorKind::Revoked).
    Denied {
        /// In which view: a rank is a member of one view, and many may be open.
        view: ViewId,
        /// Whose region.
        peer: Rank,
        /// Which.
        region: Region,
    },
    /// A peer's region can be posted to again, or for the first time after a post was refused.
    /// Whether the right was granted shows when it is used.
    Restored {
        /// In which view.
        view: ViewId,
        /// Whose region.
        peer: Rank,
        /// Which.
        region: Region,
    },
}

/// A fabric on which an owner decides which peers write to its regions.
///
/// # What every implementation keeps
/// - At first no peer may write to any region.
/// - When [`revoke`](Permissions::revoke) returned, nothing more of that peer's lands in the
///   region, whatever was under way.
/// - A right that is used without being there harms nothing but the connection between those two
///   for that region; rows and other regions go on.
/// - No call blocks.
pub trait Permissions: Fabric {
    /// The most bytes of one list to a region, all its writes together, and of one read. A list
    /// that is longer is [`ErrorKind::OutOfRange`](super::ErrorKind::OutOfRange). At least as many
    /// as an entry of a log has, with its header and its control line.
    fn region_list_bytes_max(&self) -> usize {
        self.capabilities().write_bytes_max
    }

    /// Lets a peer write to the own region. Writes that it posts once it knows of this (the
    /// protocol tells it) land; where its fabric must hear of it first, or the connection must be
    /// made anew, they are [`ErrorKind::QueueFull`](super::ErrorKind::QueueFull) or `Revoked` until
    /// then. [`PermissionEvent::Restored`] tells it that it may write. A write that it posts with
    /// an earlier right, taken back since, may be [`PermissionEvent::Denied`] once.
    ///
    /// # Errors
    /// `OutOfRange` for a region or a peer that does not exist, `PeerLost` for one that is gone,
    /// `Other` if the device has no more rights to give.
    fn grant(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), Self::Error>;

    /// Takes the right back. Idempotent.
    ///
    /// # Errors
    /// As [`grant`](Permissions::grant); and of any other error: the peer is cut, so nothing lands
    /// either.
    fn revoke(&mut self, view: ViewId, peer: Rank, region: Region) -> Result<(), Self::Error>;

    /// Whether a peer may write to the own region now.
    fn may_write(&self, view: ViewId, peer: Rank, region: Region) -> bool;

    /// Reads a piece of a peer's region into the memory of an own region.
    /// [`Event::Completed`](super::Event::Completed) says that it is there; a cell in it may be
    /// torn. Reads that are under way at once may be carried out in any order.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    fn read(
        &mut self,
        view: ViewId,
        from: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// The next thing that became of a permission, if any.
    fn poll_permission(&mut self) -> Option<PermissionEvent>;
}
