//! A trial on the local device that determines whether a write without the right is denied. It uses
//! two queue pairs of this process that are connected to each other.
//!
//! The fabric relies on the device to refuse a key that has ended. Therefore this is tried first,
//! with few commands. A peer is given the right, and its write must land; then the right is
//! revoked, and the same write must be refused without landing even in part.
//!
//! | module | subject |
//! |---|---|
//! | `pair` | the two queue pairs, and writes from one to the other |
//! | `owner` | granting and revoking the right |

mod owner;
mod pair;

use std::io;

use crate::adapter::Context;
use crate::devices::Choice;
use owner::Owner;

/// Size in bytes of the memory, and of each write: several packets.
const BYTES: usize = 8 << 10;

/// The result of a trial on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrialVerdict {
    /// Each write without the right was refused, and none of it landed.
    Denied,
    /// A write without the right was carried out.
    LetThrough,
    /// The trial was inconclusive: a write with the right did not arrive, for this reason.
    Untried(String),
}

/// Tries whether writes are denied once their right has been revoked.
///
/// # Errors
/// Fails if a command fails.
pub(crate) fn try_denial(context: &Context, choice: &Choice) -> io::Result<TrialVerdict> {
    let mut owner = Owner::new(context, choice, BYTES)?;
    let key = owner.grant()?;
    if let Some(why) = owner.write(key)? {
        return Ok(TrialVerdict::Untried(why));
    }
    owner.revoke()?;
    let is_denied = stays_denied(&mut owner, key)? && stops(&mut owner)?;
    Ok(if is_denied { TrialVerdict::Denied } else { TrialVerdict::LetThrough })
}

/// Returns whether writes posted after the revocation of the right are denied, both over the
/// existing connection and after it has been re-established.
fn stays_denied(owner: &mut Owner, key: u32) -> io::Result<bool> {
    let mut is_denied = true;
    for _ in 0..2 {
        let before = owner.look()?;
        let name = owner.post(key)?;
        is_denied &= owner.is_denied(name, &before)?;
        // The denial has broken the connection.
        owner.connect()?;
    }
    Ok(is_denied)
}

/// Returns whether a write that is in flight when the right is revoked is stopped.
fn stops(owner: &mut Owner) -> io::Result<bool> {
    let key = owner.grant()?;
    let name = owner.post(key)?;
    owner.let_time_pass();
    owner.revoke()?;
    let before = owner.look()?;
    owner.has_stopped(name, &before)
}
