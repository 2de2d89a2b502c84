//! The thread that serves a member's clients: one thread for all clients, which never blocks on any
//! of them.
//!
//! # Invariants
//! - Clients take turns of bounded length, so no client delays another.
//! - All data held for a client is bounded. A publisher is not read from while its lines wait for
//!   slots, and a subscriber that falls too far behind is disconnected and named in the status.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd as _;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tramontane_control::client_messages::{ClientLife, ClientRefusal};
use tramontane_control::{Session, SessionError, Wakeup};
use tramontane_core::ids::SubgroupId;

use super::connection::ClientConnection;
use super::cut::Cut;
use super::leases::Leases;
use super::member::ServedMember;
use crate::group::clients::origin::Origin;
use crate::group::status::group_status::{CutClient, SharedStatus};

/// The maximum number of clients of a member. No source may use more than half of the connections
/// that the others leave free.
const CLIENTS_MAX: usize = 1_024;

/// The interval between checks of leases, of the status, and of clients that send nothing.
const CARE_PAUSE: Duration = Duration::from_millis(100);

/// The interval between checks for a free slot if nothing else wakes the thread.
const SLOT_PAUSE: Duration = Duration::from_millis(1);

/// The number of recently disconnected clients that the status lists.
const CUT_MAX: usize = 16;

/// The state of the serving thread.
pub(crate) struct Service {
    pub(crate) member: ServedMember,
    pub(crate) arrivals: Receiver<Session>,
    pub(crate) board: SharedStatus,
    connections: BTreeMap<u64, ClientConnection>,
    /// The connection of each publisher.
    publishers: BTreeMap<(SubgroupId, ClientLife), u64>,
    leases: BTreeMap<SubgroupId, Leases>,
    next_number: u64,
    next_care: Instant,
    cut: VecDeque<CutClient>,
    cut_total: u64,
}

impl Service {
    pub(crate) fn new(
        member: ServedMember,
        arrivals: Receiver<Session>,
        board: SharedStatus,
    ) -> Self {
        let lease = |id: SubgroupId| (id, Leases::new(Duration::from_millis(member.lease_ms(id))));
        let leases = member.subgroups().into_iter().map(lease).collect();
        Self {
            member,
            arrivals,
            board,
            connections: BTreeMap::new(),
            publishers: BTreeMap::new(),
            leases,
            next_number: 0,
            next_care: Instant::now(),
            cut: VecDeque::new(),
            cut_total: 0,
        }
    }

    /// Serves until the member has ended.
    pub(crate) fn run(mut self) {
        while !self.member.has_ended() {
            let feed = std::sync::Arc::clone(&self.member.feed);
            // From here on, anything new ends the wait.
            let wakeup = feed.fall_asleep();
            let has_more = self.work();
            let timeout = if has_more { Duration::ZERO } else { self.pause() };
            self.wait(wakeup, timeout);
            feed.stay_awake();
        }
    }

    /// Runs one turn for each client. Returns true if there is more to do right away.
    fn work(&mut self) -> bool {
        let now = Instant::now();
        while let Ok(session) = self.arrivals.try_recv() {
            self.take_in(session, now);
        }
        self.hand_out_outcomes();
        let mut has_more = false;
        let mut over = Vec::new();
        for (number, connection) in &mut self.connections {
            let known = connection.life();
            match connection.work(&mut self.member, now) {
                Ok(more) => has_more |= more,
                Err(why) => over.push((*number, why)),
            }
            if known.is_none()
                && let Some(life) = connection.life()
            {
                self.publishers.insert(life, *number);
            }
        }
        over.into_iter().for_each(|(number, why)| self.end(number, &why));
        self.member.discard_closed();
        for outlet in self.member.outlets() {
            outlet.flush();
            outlet.ring();
        }
        if now >= self.next_care {
            self.next_care = now + CARE_PAUSE;
            self.end_leases(now);
            self.show(now);
        }
        has_more
    }

    fn take_in(&mut self, session: Session, now: Instant) {
        let Some(session) = session.into_queued() else { return };
        let mut connection = ClientConnection::new(session, now);
        let source = connection.session().source();
        let is_of_source = |other: &&ClientConnection| other.session().source() == source;
        let of_source = self.connections.values().filter(is_of_source).count();
        if of_source >= CLIENTS_MAX.saturating_sub(self.connections.len()) {
            return connection.refuse(ClientRefusal::MemberFull);
        }
        self.connections.insert(self.next_number, connection);
        self.next_number += 1;
    }

    /// Passes the outcomes of requests to the clients that made them.
    fn hand_out_outcomes(&mut self) {
        let mut told = self.member.feed.lock();
        let outcomes: Vec<_> = told
            .subgroups
            .iter_mut()
            .map(|(id, of)| (*id, std::mem::take(&mut of.outcomes)))
            .collect();
        drop(told);
        for (subgroup, outcomes) in outcomes {
            for outcome in outcomes {
                let number = self.publishers.get(&(subgroup, outcome.life())).copied();
                let Some(number) = number else { continue };
                let Some(connection) = self.connections.get_mut(&number) else { continue };
                if let Err(why) = connection.hear(&outcome, &self.member) {
                    self.end(number, &why);
                }
            }
        }
    }

    /// Ends a client's connection, and logs the reason if operators should know it.
    fn end(&mut self, number: u64, why: &Cut) {
        let Some(mut connection) = self.connections.remove(&number) else { return };
        if let Some((subgroup, life)) = connection.life()
            && self.publishers.get(&(subgroup, life)) == Some(&number)
        {
            self.publishers.remove(&(subgroup, life));
            self.member.forget(subgroup, life);
        }
        let name = connection.name();
        match why {
            Cut::Refused(refusal) => connection.refuse(*refusal),
            Cut::Ended | Cut::Gone(SessionError::Closed) => {
                return tracing::debug!(client = name, %why, "a client disconnected");
            }
            Cut::Gone(_) | Cut::Malformed => {}
        }
        if matches!(why, Cut::Refused(refusal) if *refusal != ClientRefusal::TooSlow) {
            return tracing::info!(client = name, %why, "a client is refused");
        }
        tracing::warn!(client = name, %why, "a client was disconnected");
        self.cut_total += 1;
        self.cut.truncate(CUT_MAX - 1);
        self.cut.push_front(CutClient { name, why: why.to_string() });
    }

    fn end_leases(&mut self, now: Instant) {
        for (subgroup, leases) in &mut self.leases {
            let (known, own, senders) = self.member.leases_of(*subgroup);
            let is_here = |life: &ClientLife| self.publishers.contains_key(&(*subgroup, *life));
            let over = leases.look(&known, (own, &senders), is_here, now);
            let Some(outlet) = self.member.outlet(*subgroup) else { continue };
            for (life, attachments) in over {
                tracing::info!(client = %life.id, "the lease of a client has expired");
                outlet.put_word(Origin::LeaseEnds { life, attachments });
            }
            outlet.ring();
        }
    }

    fn show(&self, now: Instant) {
        let statuses =
            self.connections.values().filter_map(|one| one.status(&self.member, now)).collect();
        self.board.put_clients(statuses, self.cut_total, self.cut.iter().cloned().collect());
    }

    /// Returns how long the thread may sleep if nothing arrives.
    fn pause(&mut self) -> Duration {
        let waits = self.connections.values().any(ClientConnection::waits_for_slots)
            || self.member.outlets().any(|outlet| !outlet.flush());
        if waits { SLOT_PAUSE } else { CARE_PAUSE }
    }

    fn wait(&mut self, wakeup: &Wakeup, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).ok();
        let sessions = self.connections.values().map(|one| (one.session(), one.interest()));
        let descriptors =
            sessions.map(|(session, flags)| PollFd::from_borrowed_fd(session.as_fd(), flags));
        let own = PollFd::new(wakeup, PollFlags::IN);
        let mut descriptors: Vec<_> = descriptors.chain([own]).collect();
        // An interrupted wait is merely a short one.
        let _ = poll(&mut descriptors, timeout.as_ref());
        // Clients that have left are also read from, so that their departure is noticed.
        let has_come = |one: &PollFd<'_>| !one.revents().difference(PollFlags::OUT).is_empty();
        let have_come: Vec<bool> = descriptors.iter().map(has_come).collect();
        for (connection, has_come) in self.connections.values_mut().zip(have_come) {
            if has_come {
                connection.can_be_read();
            }
        }
    }
}
