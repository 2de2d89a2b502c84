//! Trials on the local device: whether a write without the right is denied, over two queue pairs of
//! this process that are connected to each other.
//!
//! Drivers differ in the effect of access flags, of a reset, and of an invalidated window.
//! Therefore the mechanism that the fabric relies on is tried first, with few commands. A peer is
//! given the right, and its write must land; the right is revoked, and the same write must be
//! refused without landing in part.
//!
//! | module | subject |
//! |---|---|
//! | `pair` | the two queue pairs, and writes from one to the other |
//! | `ways` | granting and revoking the right |

mod pair;
mod ways;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::adapter::Context;
use crate::devices::Choice;
use ways::Owner;

/// A method of giving a peer the right to write and of revoking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum RightsWay {
    /// A registration for the peer, with a separate key, which is ended. The fabric uses this.
    Registration,
    /// A memory window of type 2, bound and invalidated by requests, with a new key each time: no
    /// command to the kernel. Not all devices have them. The fabric uses them if told to.
    Window,
    /// The access flags of the queue pair. The fabric does not use it: some drivers ignore them,
    /// and what is under way may land after they have changed.
    Flags,
    /// A reset of the queue pair, which comes back with other access flags. The fabric does not use
    /// it: on some devices a reset stops nothing.
    Reset,
}

impl RightsWay {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::Registration, Self::Window, Self::Flags, Self::Reset];
}

impl fmt::Display for RightsWay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Registration => "a registration",
            Self::Window => "a window",
            Self::Flags => "access flags",
            Self::Reset => "a reset",
        })
    }
}

/// The result of a trial on a device.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Verdict {
    /// Each write without the right was refused, and none of it landed.
    Denied,
    /// A write without the right was carried out.
    LetThrough,
    /// The trial was inconclusive: a write with the right did not arrive, for this reason.
    Untried(String),
}

/// The cost of changing a right: the median of all rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ChangeCost {
    /// The time in nanoseconds.
    pub time_ns: u64,
    /// Commands to the kernel, at both ends together.
    pub commands: u32,
}

/// The trial of a method on a device.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RightsTrial {
    /// The method that was tried.
    pub way: RightsWay,
    /// The trial's result.
    pub verdict: Verdict,
    /// The cost of granting the right.
    pub grant: ChangeCost,
    /// The cost of revoking it.
    pub revoke: ChangeCost,
}

impl fmt::Display for RightsTrial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |cost: &ChangeCost| Duration::from_nanos(cost.time_ns).as_micros();
        let verdict = match &self.verdict {
            Verdict::Denied => "denied",
            Verdict::LetThrough => "LET THROUGH",
            Verdict::Untried(why) => why,
        };
        let way = self.way.to_string();
        let (grant, revoke) = (&self.grant, &self.revoke);
        write!(
            out,
            "{way:<16} grant {:>7} us, {} commands; revoke {:>7} us, {} commands; a write without \
             the right: {verdict}",
            us(grant),
            grant.commands,
            us(revoke),
            revoke.commands,
        )
    }
}

/// Tries a method `rounds` times, with `bytes` of memory.
///
/// # Errors
/// Fails if a command fails.
pub(crate) fn try_way(
    context: &Context,
    choice: &Choice,
    way: RightsWay,
    bytes: usize,
    rounds: u32,
) -> io::Result<RightsTrial> {
    let mut owner = Owner::new(context, choice, way, bytes)?;
    let (mut grants, mut revokes) = (Vec::new(), Vec::new());
    let mut verdict = Verdict::Denied;
    for round in 1..=rounds.max(1) {
        let (grant, key) = measure(&mut owner, Owner::grant)?;
        grants.push(grant);
        if let Some(why) = owner.write(key)? {
            verdict = Verdict::Untried(why);
            break;
        }
        let (revoke, ()) = measure(&mut owner, Owner::revoke)?;
        revokes.push(revoke);
        if !stays_denied(&mut owner, key)? || !stops(&mut owner, round % 3)? {
            verdict = Verdict::LetThrough;
            break;
        }
    }
    Ok(RightsTrial { way, verdict, grant: median(&mut grants), revoke: median(&mut revokes) })
}

/// Returns whether writes posted after the right was revoked are denied: over the connection as it
/// is, and after it was re-established.
fn stays_denied(owner: &mut Owner, key: u32) -> io::Result<bool> {
    let mut is_denied = true;
    for _ in 0..2 {
        let before = owner.look()?;
        let name = owner.post(key)?;
        is_denied &= owner.is_denied(name, &before)?;
        // The denial broke the connection.
        owner.connect()?;
    }
    Ok(is_denied)
}

/// Returns whether a write stops that has been in flight for `moments` moments when the right is
/// revoked.
fn stops(owner: &mut Owner, moments: u32) -> io::Result<bool> {
    let key = owner.grant()?;
    let name = owner.post(key)?;
    for _ in 0..moments {
        owner.let_time_pass();
    }
    owner.revoke()?;
    let before = owner.look()?;
    let has_stopped = owner.has_stopped(name, &before)?;
    owner.connect()?;
    Ok(has_stopped)
}

fn measure<T>(
    owner: &mut Owner,
    change: impl FnOnce(&mut Owner) -> io::Result<T>,
) -> io::Result<(ChangeCost, T)> {
    let (before, began) = (owner.commands(), Instant::now());
    let result = change(owner)?;
    let time_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok((ChangeCost { time_ns, commands: owner.commands() - before }, result))
}

fn median(costs: &mut [ChangeCost]) -> ChangeCost {
    costs.sort_by_key(|cost| cost.time_ns);
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}
