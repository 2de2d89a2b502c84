//! What a check found.

use std::fmt;

use serde::Serialize;

use super::End;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A write without bytes is answered.
    Reach,
    /// Packets of the full size are answered.
    PacketSize,
    /// Whoever sees a counter sees what was written before it.
    WriteOrder,
    /// Whoever sees the end of a write sees its beginning.
    ByteOrder,
    /// What is completed can be seen at the other end.
    Visibility,
    /// A write with a key that was ended is refused.
    EndedKey,
    /// A write that access flags forbid is refused.
    AccessFlags,
    /// A write to a queue pair that was reset changes nothing.
    Reset,
    /// A peer that is gone is given up in time, and no earlier.
    Loss,
}

impl Check {
    /// All of them, in the order in which they are made.
    pub const ALL: [Self; 9] = [
        Self::Reach,
        Self::PacketSize,
        Self::WriteOrder,
        Self::ByteOrder,
        Self::Visibility,
        Self::EndedKey,
        Self::AccessFlags,
        Self::Reset,
        Self::Loss,
    ];

    /// As people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reach => "reach",
            Self::PacketSize => "packet size",
            Self::WriteOrder => "order between writes",
            Self::ByteOrder => "order within a write",
            Self::Visibility => "visible upon completion",
            Self::EndedKey => "denial by an ended key",
            Self::AccessFlags => "denial by access flags",
            Self::Reset => "denial by reset",
            Self::Loss => "loss of a peer",
        }
    }
}

/// What a finding comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it must be.
    Passed,
    /// Worth knowing; the fabric does not depend on it, or not with these options.
    Note,
    /// The fabric would go wrong: the text says what to do.
    Failed,
    /// Not tried.
    Skipped,
}

impl Verdict {
    /// One word.
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

/// One check in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was tried.
    pub check: Check,
    /// Which end wrote.
    pub from: End,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was seen, and what to do if it must not be.
    pub text: String,
}

/// The most that a text takes on its way.
const TEXT_MAX: usize = 1000;

impl Finding {
    /// The verdict and its text; check and direction are known to both.
    pub(super) fn encode(&self) -> Vec<u8> {
        let verdict = match self.verdict {
            Verdict::Passed => 0,
            Verdict::Note => 1,
            Verdict::Failed => 2,
            Verdict::Skipped => 3,
        };
        let text = self.text.as_bytes();
        let mut bytes = vec![verdict];
        bytes.extend_from_slice(text.get(..TEXT_MAX).unwrap_or(text));
        bytes
    }

    /// None if it is no finding.
    pub(super) fn decode(check: Check, from: End, bytes: &[u8]) -> Option<Self> {
        let (verdict, text) = bytes.split_first()?;
        let verdict = match verdict {
            0 => Verdict::Passed,
            1 => Verdict::Note,
            2 => Verdict::Failed,
            3 => Verdict::Skipped,
            _ => return None,
        };
        // It is printed: a peer's bytes are not to move the cursor.
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
    fn findings_survive_the_wire_and_other_bytes_are_refused() {
        for verdict in [Verdict::Passed, Verdict::Note, Verdict::Failed, Verdict::Skipped] {
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
