//! Tokens of posts and reads: each token holds the kind of work, the link, and the campaign.
//!
//! Completions that arrive after their campaign is over are ignored.
//!
//! Requirement: TRM-4.

use super::link::LinkId;
use crate::fabric::Token;

/// The work that a token identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A list posted to a follower's log.
    Append,
    /// A read of part of a peer's control line and headers.
    CopyHeaders,
    /// A read of a payload in a peer's log.
    CopyPayload,
}

/// The parts of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) work: Work,
    pub(super) link: LinkId,
    /// Lower bits of the campaign's number.
    pub(super) campaign: u32,
    /// Lower bits of the sequence number among the posts of that kind.
    pub(super) sequence: u32,
}

const SEQUENCE_BITS: u32 = 20;
const CAMPAIGN_BITS: u32 = 24;
const LINK_BITS: u32 = 16;
/// Modulus of campaign numbers.
pub(super) const CAMPAIGNS: u32 = 1 << CAMPAIGN_BITS;
/// Modulus of sequence numbers.
pub(super) const SEQUENCES: u32 = 1 << SEQUENCE_BITS;

impl Ticket {
    pub(super) fn token(self) -> Token {
        let work = match self.work {
            Work::Append => 0,
            Work::CopyHeaders => 1,
            Work::CopyPayload => 2_u64,
        };
        let campaign = u64::from(self.campaign & (CAMPAIGNS - 1));
        let sequence = u64::from(self.sequence & (SEQUENCES - 1));
        Token(
            (work << (SEQUENCE_BITS + CAMPAIGN_BITS + LINK_BITS))
                | (u64::from(self.link.0) << (SEQUENCE_BITS + CAMPAIGN_BITS))
                | (campaign << SEQUENCE_BITS)
                | sequence,
        )
    }

    pub(super) fn of(token: Token) -> Option<Self> {
        let work = match token.0 >> (SEQUENCE_BITS + CAMPAIGN_BITS + LINK_BITS) {
            0 => Work::Append,
            1 => Work::CopyHeaders,
            2 => Work::CopyPayload,
            _ => return None,
        };
        let link = (token.0 >> (SEQUENCE_BITS + CAMPAIGN_BITS)) & u64::from(u16::MAX);
        let campaign = (token.0 >> SEQUENCE_BITS) & u64::from(CAMPAIGNS - 1);
        let sequence = token.0 & u64::from(SEQUENCES - 1);
        Some(Self {
            work,
            link: LinkId(u16::try_from(link).unwrap_or(0)),
            campaign: u32::try_from(campaign).unwrap_or(0),
            sequence: u32::try_from(sequence).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_round_trips_through_its_token() {
        for work in [Work::Append, Work::CopyHeaders, Work::CopyPayload] {
            let ticket = Ticket {
                work,
                link: LinkId(u16::MAX),
                campaign: CAMPAIGNS - 1,
                sequence: SEQUENCES - 1,
            };
            assert_eq!(Ticket::of(ticket.token()), Some(ticket));
        }
        assert_eq!(Ticket::of(Token(u64::MAX)), None);
    }
}
