//! Client leases: a client is forgotten if no member hears from it for the duration of its lease.
//!
//! A client's lease is kept by the member that last attached the client or, if that member is lost,
//! by the first member of the view that sends in the subgroup. This member ends the lease with a
//! message to the group. All members therefore forget the client at the same point of the order, or
//! not at all if another member has attached it in the meantime.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::ClientLife;
use tramontane_core::ids::NodeId;

use crate::group::clients::order::table::Known;

/// The leases of a subgroup that this member keeps.
#[derive(Debug)]
pub(crate) struct Leases {
    lease: Duration,
    /// The time at which each attached client was last heard from, with the number of its
    /// attachment.
    unheard: BTreeMap<ClientLife, (u64, Instant)>,
}

impl Leases {
    pub(crate) const fn new(lease: Duration) -> Self {
        Self { lease, unheard: BTreeMap::new() }
    }

    /// Returns the clients whose leases have expired, with their attachments. `senders` are the
    /// members of the view that send in the subgroup; `is_here` returns whether a client is
    /// connected to this member.
    pub(crate) fn look(
        &mut self,
        known: &[Known],
        (own, senders): (NodeId, &[NodeId]),
        is_here: impl Fn(&ClientLife) -> bool,
        now: Instant,
    ) -> Vec<(ClientLife, u64)> {
        let counts = |known: &&Known| {
            let is_home_there = senders.contains(&known.home);
            let counting = if is_home_there { Some(&known.home) } else { senders.first() };
            counting == Some(&own) && !is_here(&known.life)
        };
        let mut unheard = BTreeMap::new();
        let mut over = Vec::new();
        for Known { life, attachments, .. } in known.iter().filter(counts) {
            let before = self.unheard.get(life).filter(|(of, _)| of == attachments);
            let mut since = before.map_or(now, |(_, since)| *since);
            if now.duration_since(since) >= self.lease {
                over.push((*life, *attachments));
                // The request may take a while until it is delivered.
                since = now;
            }
            unheard.insert(*life, (*attachments, since));
        }
        self.unheard = unheard;
        over
    }
}

#[cfg(test)]
mod tests {
    use tramontane_control::client_messages::ClientId;

    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    const fn life(id: u64) -> ClientLife {
        ClientLife { id: ClientId(id), incarnation: 1 }
    }

    const fn known(id: u64, home: u32, attachments: u64) -> Known {
        Known { life: life(id), home: NodeId(home), attachments }
    }

    /// Checks these clients once per second; the flag says whether they are connected here.
    fn ends(
        own: u32,
        senders: &[u32],
        clients: &dyn Fn(u64) -> (Vec<Known>, bool),
    ) -> Vec<(u64, u64)> {
        let (start, mut leases) = (Instant::now(), Leases::new(LEASE));
        let senders: Vec<NodeId> = senders.iter().copied().map(NodeId).collect();
        let mut ends = Vec::new();
        for second in 0..30 {
            let (known, is_here) = clients(second);
            let now = start + Duration::from_secs(second);
            let over = leases.look(&known, (NodeId(own), &senders), |_| is_here, now);
            ends.extend(over.into_iter().map(|(life, _)| (second, life.id.0)));
        }
        ends
    }

    #[test]
    fn first_sender_keeps_leases_of_lost_members_clients() {
        let clients = |_| (vec![known(1, 2, 1), known(2, 9, 1)], false);
        assert_eq!(ends(2, &[1, 2, 3], &clients), [(10, 1), (20, 1)]);
        assert_eq!(ends(1, &[1, 2, 3], &clients), [(10, 2), (20, 2)]);
        assert_eq!(ends(3, &[1, 2, 3], &clients), []);
        assert_eq!(ends(4, &[], &clients), [], "one that does not send");
    }

    #[test]
    fn contact_or_reattachment_restarts_client_lease() {
        let heard = |second| (vec![known(1, 2, 1)], second == 5);
        assert_eq!(ends(2, &[2], &heard), [(16, 1), (26, 1)]);
        let again = |second| (vec![known(1, 2, if second < 7 { 1 } else { 2 })], false);
        assert_eq!(ends(2, &[2], &again), [(17, 1), (27, 1)]);
        let moved = |second| (vec![known(1, if second < 7 { 2 } else { 3 }, 1)], false);
        assert_eq!(ends(2, &[2, 3], &moved), []);
        let forgotten =
            |second| (if second < 7 { vec![known(1, 2, 1)] } else { Vec::new() }, false);
        assert_eq!(ends(2, &[2], &forgotten), []);
    }
}
