//! Acceptance checks of RDMA between two hosts: each requirement of the fabric on their NICs and
//! the network is tested, and gets a verdict.
//!
//! Both ends run the same checks in the same order, in lockstep over a [`Talk`]. In each check one
//! end writes and the other observes; then they swap roles. The writing end judges and reports to
//! the other, so both arrive at the same [`Finding`]s.
//!
//! | check | requirement |
//! |---|---|
//! | [`Check::Reach`] | an empty write is acknowledged |
//! | [`Check::PacketSize`] | one packet of the full size is acknowledged, and so are sixteen in one write |
//! | [`Check::WriteOrder`] | a reader that sees a counter sees everything written before it |
//! | [`Check::ByteOrder`] | a reader that sees the end of a write sees its beginning |
//! | [`Check::Visibility`] | a completed write is visible at the other end |
//! | [`Check::EndedKey`] | a write with a key that was ended is refused, and changes nothing |
//! | [`Check::Loss`] | a dead peer is given up within the stated times |
//!
//! A violation of the order may occur only once in many writes, so a verdict about order reports
//! the observed rounds but proves nothing.
//!
//! # Invariants
//! - A failed check does not affect later ones, because each check has its own connection and
//!   memory.
//! - Every wait is bounded.

mod connection;
mod denial;
mod finding;
mod loss;
mod order;
mod reach;
mod session;
mod talk;

use std::net::IpAddr;

pub use finding::{Check, End, Finding, FindingVerdict};
pub use session::CheckError;
use session::{Judged, Session};
pub use talk::{Talk, TcpTalk};

use crate::devices::Wanted;
use crate::settings::{Limits, WriteOrder};
use crate::site::Site;

/// The settings of the checks.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device, port and address of this end.
    pub wanted: Wanted,
    /// The fabric's limits, which must be the same at both ends.
    pub limits: Limits,
    /// The address at which this end talks to the other. A device with this address is preferred,
    /// as in a group.
    pub meeting: Option<IpAddr>,
    /// Number of rounds of each check of order.
    pub rounds: u64,
}

/// Runs all checks in both directions, and passes each finding to `found` as it arises.
///
/// # Errors
/// [`CheckError`]: a check that fails is a finding and no error.
pub fn run(
    options: &Options,
    end: End,
    talk: &mut dyn Talk,
    mut found: impl FnMut(&Finding),
) -> Result<Vec<Finding>, CheckError> {
    let site = Site::open(&options.wanted, &options.limits, options.meeting)?;
    greet(options, end, talk)?;
    compare_write_orders(site.report().write_order, talk)?;
    let mut session = Session { site: &site, talk, rounds: options.rounds };
    let mut findings: Vec<Finding> = Vec::new();
    for check in Check::ALL {
        for writer in [End::First, End::Second] {
            // If packets do not get through, the remaining checks are meaningless.
            let is_cut = findings.iter().any(|finding| {
                matches!(finding.check, Check::Reach | Check::PacketSize)
                    && finding.verdict == FindingVerdict::Failed
            });
            let finding = match (is_cut, end == writer) {
                (true, _) => Finding {
                    check,
                    from: writer,
                    verdict: FindingVerdict::Skipped,
                    text: "packets do not get through: see the check that failed".to_owned(),
                },
                (false, true) => {
                    let (verdict, text) = session.write(check)?;
                    let finding = Finding { check, from: writer, verdict, text };
                    session.talk.tell(&finding.encode())?;
                    finding
                }
                (false, false) => {
                    session.look(check)?;
                    Finding::decode(check, writer, &session.talk.hear()?)
                        .ok_or(CheckError::Mismatch)?
                }
            };
            found(&finding);
            findings.push(finding);
        }
    }
    Ok(findings)
}

/// The beginning of the first frame, which identifies this version's checks.
const GREETING: &[u8] = b"tramontane verbs check 2 ";

/// Ensures that both ends run the same checks, and that their roles differ.
fn greet(options: &Options, end: End, talk: &mut dyn Talk) -> Result<(), CheckError> {
    let greeting = |end: End| {
        let mut greeting = GREETING.to_vec();
        greeting.extend_from_slice(&options.rounds.to_le_bytes());
        greeting.push(u8::from(end == End::First));
        greeting
    };
    talk.tell(&greeting(end))?;
    let other = if end == End::First { End::Second } else { End::First };
    if talk.hear()? == greeting(other) { Ok(()) } else { Err(CheckError::Mismatch) }
}

/// Members that keep the order of writes in different ways reject connections from each other, so
/// there is nothing to check.
fn compare_write_orders(own: WriteOrder, talk: &mut dyn Talk) -> Result<(), CheckError> {
    talk.tell(&[u8::from(own == WriteOrder::ByUpdates)])?;
    match talk.hear()?.as_slice() {
        [other @ (0 | 1)] if (*other == 1) == (own == WriteOrder::ByUpdates) => Ok(()),
        [0 | 1] => Err(CheckError::WriteOrders),
        _ => Err(CheckError::Mismatch),
    }
}

impl Session<'_> {
    fn write(&mut self, check: Check) -> Judged {
        match check {
            Check::Reach => reach::write_nothing(self),
            Check::PacketSize => reach::write_full_packets(self),
            Check::WriteOrder => order::write_guarded(self),
            Check::ByteOrder => order::write_long(self),
            Check::Visibility => order::write_and_tell(self),
            Check::EndedKey => denial::write(self),
            Check::Loss => loss::write(self),
        }
    }

    fn look(&mut self, check: Check) -> Result<(), CheckError> {
        match check {
            Check::Reach | Check::PacketSize => reach::stay(self),
            Check::WriteOrder => order::look_guarded(self),
            Check::ByteOrder => order::look_long(self),
            Check::Visibility => order::look_when_told(self),
            Check::EndedKey => denial::look(self),
            Check::Loss => loss::go(self),
        }
    }
}
