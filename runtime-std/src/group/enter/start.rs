//! How a process becomes a member: with all initial nodes in the first view, or admitted to a
//! running group (VIE-12).
//!
//! A node first looks for a running member, and joins it if there is one. Otherwise an initial node
//! meets the others (`meeting`), until all are there or a running member is found after all. So
//! nodes may be started in any order, and a node that returns uses the same command as a new one.
//! Nodes that meet form the group if none of them was ever a member of it, or if all of them are
//! told to (`forming`).

use std::time::Instant;

use super::place::StartingMember;
use super::start_options::{StartError, StartOptions};
use crate::group::delivery::replica::Replica;
use crate::group::description::terms::{Description, Membership};
use crate::group::running::{Running, Stepped};

/// Becomes a member of a group, driven by a thread of its own.
///
/// Returns once this process is in a view: [`Replica::view_changed`] was called.
///
/// # Errors
/// [`StartError`]; nothing is left behind in that case, except a folder for the node's state.
pub fn start<R: Replica + 'static>(
    description: Description,
    options: StartOptions<'_>,
    replica: R,
) -> Result<Running, StartError> {
    start_boxed(description, options, Box::new(replica))
}

/// One instance for all applications, so that a program does not compile the whole member again for
/// each of its types.
fn start_boxed(
    description: Description,
    options: StartOptions<'_>,
    replica: Box<dyn Replica>,
) -> Result<Running, StartError> {
    Ok(start_stepped(description, options, replica)?.spawn()?)
}

/// Becomes a member of a group, which the caller [steps](Running::step) in its own loop. If
/// membership changes, the others remove a member that is not stepped for the group's failure
/// timeout.
///
/// # Errors
/// The same as for [`start`].
pub fn start_stepped<R: Replica>(
    description: Description,
    options: StartOptions<'_>,
    replica: R,
) -> Result<Stepped<R>, StartError> {
    let until = Instant::now() + options.time_limit;
    let cancel = options.cancel;
    let settings = options.settings;
    let (place, fabric) = StartingMember::take(&description, options)?;
    match description.membership {
        Membership::Fixed => {
            place.become_fixed(description, fabric, replica, settings, until, cancel)
        }
        Membership::Changing => {
            place.become_member(description, fabric, replica, settings, until, cancel)
        }
    }
}
