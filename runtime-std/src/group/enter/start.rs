//! Makes a process a member, either together with all initial nodes in the first view, or by
//! admission to a running group (VIE-12).
//!
//! A node first looks for a running member, and joins it if there is one. Otherwise, an initial
//! node meets the others (`meeting`) until all are present, or until a running member is found
//! after all. So nodes may be started in any order, and a returning node uses the same command as a
//! new one. Nodes that meet form the group if none of them has ever been a member of it, or if all
//! of them have been told to form a new one (`forming`).

use std::time::Instant;

use super::place::StartingMember;
use super::start_options::{StartError, StartOptions};
use crate::group::delivery::application::Application;
use crate::group::description::terms::{Description, Membership};
use crate::group::running::{Running, Stepped};

/// Makes this process a member of a group. The member is driven by its own thread.
///
/// Returns once this process is in a view and [`Application::view_changed`] has been called.
///
/// # Errors
/// Returns [`StartError`]. In that case nothing is left behind, except a folder for the node's
/// state.
pub fn start<A: Application + 'static>(
    description: Description,
    options: StartOptions<'_>,
    application: A,
) -> Result<Running, StartError> {
    start_boxed(description, options, Box::new(application))
}

/// Not generic, so that a program does not compile the whole member again for each of its
/// application types.
fn start_boxed(
    description: Description,
    options: StartOptions<'_>,
    application: Box<dyn Application>,
) -> Result<Running, StartError> {
    Ok(start_stepped(description, options, application)?.spawn()?)
}

/// Makes this process a member of a group, which the caller [steps](Running::step) in its own loop.
/// If membership can change, the other members remove a member that is not stepped for as long as
/// the group's failure timeout.
///
/// # Errors
/// Returns the same errors as [`start`].
pub fn start_stepped<A: Application>(
    description: Description,
    options: StartOptions<'_>,
    application: A,
) -> Result<Stepped<A>, StartError> {
    let (group, node) = (&description.name, options.node);
    let _span = tracing::info_span!("start", %group, node).entered();
    let until = Instant::now() + options.time_limit;
    let cancel = options.cancel;
    let settings = options.settings;
    let (place, fabric) = StartingMember::take(&description, options)?;
    match description.membership {
        Membership::Fixed => {
            place.become_fixed(description, fabric, application, settings, until, cancel)
        }
        Membership::Changing => {
            place.become_member(description, fabric, application, settings, until, cancel)
        }
    }
}
