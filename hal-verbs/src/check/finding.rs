//! Findings of checks.

use std::fmt;

use serde::Serialize;

/// The role of an end in the checks. Each check needs one end of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The end that writes first.
    First,
    /// The end that observes first.
    Second,
}

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// An empty write is acknowledged.
    Reach,
    /// Packets of the full size are acknowledged.
    PacketSize,
    /// A reader that sees a counter sees everything written before it.
    WriteOrder,
    /// A reader that sees the end of a write sees its beginning.
    ByteOrder,
    /// A completed write is visible at the other end.
    Visibility,
    /// A write with a revoked key is refused.
    EndedKey,
    /// A dead peer is given up in time, and not too early.
    Loss,
}

impl Check {
    /// All checks, in the order in which they run.
    pub const ALL: [Self; 7] = [
        Self::Reach,
        Self::PacketSize,
        Self::WriteOrder,
        Self::ByteOrder,
        Self::Visibility,
        Self::EndedKey,
        Self::Loss,
    ];

    /// Returns the check's name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reach => "reach",
            Self::PacketSize => "packet size",
            Self::WriteOrder => "order between writes",
            Self::ByteOrder => "order within a write",
            Self::Visibility => "visible upon completion",
            Self::EndedKey => "denial by a revoked key",
            Self::Loss => "loss of a peer",
        }
    }
}

/// The verdict of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// The property holds.
    Passed,
    /// The property does not hold, but the fabric does not depend on it, at least not with the
    /// current options.
    Note,
    /// The fabric would malfunction. The text contains the remedy.
    Failed,
    /// The check was not run.
    Skipped,
}

impl FindingVerdict {
    /// Returns the verdict as one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Note => "note",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// The result of one check in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The end that wrote.
    pub from: End,
    /// The verdict.
    pub verdict: FindingVerdict,
    /// The observation, and the remedy if there is a problem.
    pub text: String,
}

/// Maximum number of bytes of a text that are sent.
const TEXT_MAX: usize = 1000;

impl Finding {
    /// Encodes the verdict and its text. Both ends already know the check and the direction.
    pub(super) fn encode(&self) -> Vec<u8> {
        let verdict = match self.verdict {
            FindingVerdict::Passed => 0,
            FindingVerdict::Note => 1,
            FindingVerdict::Failed => 2,
            FindingVerdict::Skipped => 3,
        };
        let text = self.text.as_bytes();
        let mut bytes = vec![verdict];
        bytes.extend_from_slice(text.get(..TEXT_MAX).unwrap_or(text));
        bytes
    }

    /// Decodes a finding. Returns `None` if the bytes are not one.
    pub(super) fn decode(check: Check, from: End, bytes: &[u8]) -> Option<Self> {
        let (verdict, text) = bytes.split_first()?;
        let verdict = match verdict {
            0 => FindingVerdict::Passed,
            1 => FindingVerdict::Note,
            2 => FindingVerdict::Failed,
            3 => FindingVerdict::Skipped,
            _ => return None,
        };
        // The text is printed, so a peer's bytes must not be able to move the cursor.
        let text = String::from_utf8_lossy(text);
        let text = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Some(Self { check, from, verdict, text })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:<8} {:<24} {}", self.verdict.name(), self.check.name(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_round_trip_and_invalid_bytes_are_refused() {
        for verdict in [
            FindingVerdict::Passed,
            FindingVerdict::Note,
            FindingVerdict::Failed,
            FindingVerdict::Skipped,
        ] {
            let finding = Finding {
                check: Check::Loss,
                from: End::Second,
                verdict,
                text: "after 1200 ms".to_owned(),
            };
            let decoded = Finding::decode(Check::Loss, End::Second, &finding.encode());
            assert_eq!(decoded, Some(finding));
        }
        assert_eq!(Finding::decode(Check::Loss, End::First, &[]), None);
        assert_eq!(Finding::decode(Check::Loss, End::First, &[4, b'a']), None);
        let odd = Finding::decode(Check::Loss, End::First, &[0, 0x1b, b'[', 0xff]);
        assert!(odd.is_some_and(|finding| !finding.text.contains('\u{1b}')));
    }
}
