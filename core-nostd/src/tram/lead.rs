//! A leader's work on messages: it assigns a log index to each of them, in runs, and decides the
//! entries that a quorum has.
//!
//! Sources take turns. Each source contributes everything that it has, in its own order, as far as
//! the log has room. A log has room for an entry if the entry that would be replaced has been
//! consumed by each present replica of the group, and by a quorum of each child that the replaced
//! entry was for (TRM-6).
//!
//! A step's run ends once its payloads, or the bodies of its references, are so long that
//! transferring or copying them takes noticeable time. Followers and children then receive
//! successive runs, and work on one run while the next is assembled and sent.
//!
//! Source: TRAM, section 5.3; requirements TRM-3, TRM-6, TRM-7, BAT-1.
//!
//! Requirement: TRM-1.

use super::common::Common;
use super::counts::{SourceCount, UpTo, parent_leader};
use super::entry::{Content, Entry, Message, Positions, Source};
use super::feed::{Fed, Ring, whole_cells};
use super::follow::FollowStage;
use super::link::{LinkId, LinkRole, Memory, Stage, rank_of};
use super::log::Log;
use super::progress::Halt;
use super::role::{Leader, Standing};
use super::shape::{feed_row, peer_row};
use super::step::StepContext;
use crate::fabric::Fabric;
use crate::ids::ClientNumber;
use crate::memory::Row;

impl Common<'_> {
    /// Counts an entry as decided once a quorum has it and, if it came from the parent, the parent
    /// has decided it.
    pub(super) fn decide<F, M: Memory>(
        &mut self,
        leader: &mut Leader,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let before = step.log.decided()?;
        let mut highest = before;
        let quorum = self.overlay.quorum(self.id.group);
        let own = self.saved_up_to(leader.tail);
        if own > highest && self.has(leader, own) >= quorum {
            highest = own;
        }
        if highest < leader.tail {
            // bound: the replicas of the group
            for link in self.links.peers() {
                let Some(reached) = self.reached(link) else { continue };
                if reached > highest && self.has(leader, reached) >= quorum {
                    highest = reached;
                }
            }
        }
        let highest = self.confirmed(leader, before, highest, step)?;
        if highest > before {
            step.log.set_decided(highest)?;
            self.campaigns.attempts = 0;
        }
        Ok(())
    }

    /// Returns the log index up to which a voter's log, including its bodies, is known to equal the
    /// local log.
    fn reached(&self, link: LinkId) -> Option<u64> {
        let follow = &self.state.at(link).follow;
        let counts = follow.stage == FollowStage::Synced && follow.is_voter;
        let is_whole = !self.shape.has_references();
        let whole = if is_whole { follow.acknowledged } else { follow.covered };
        counts.then_some(follow.acknowledged.min(whole))
    }

    /// Returns the number of logs that are known to extend up to a log index.
    fn has(&self, leader: &Leader, place: u64) -> u16 {
        let mut count = u16::from(self.saved_up_to(leader.tail) >= place);
        // bound: the replicas of the group
        for link in self.links.peers() {
            if self.reached(link).is_some_and(|reached| reached >= place) {
                count = count.saturating_add(1);
            }
        }
        count
    }

    /// Appends the messages that the sources have.
    pub(super) fn propose<F: Fabric, M: Memory>(
        &mut self,
        leader: &mut Leader,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let limit = self.log_limit(step)?;
        if leader.tail >= limit {
            self.cut_silent(step);
        }
        if !self.options.batching && leader.tail > step.log.decided()? {
            return Ok(());
        }
        let limit =
            if self.options.batching { limit } else { limit.min(leader.tail.saturating_add(1)) };
        leader.run_bytes = 0;
        self.propose_null(leader, limit, step.log)?;
        self.propose_admissions(leader, limit, step)?;
        leader.wanted = None;
        self.propose_parents(leader, limit, step)?;
        self.ask_for_wanted(leader, step)?;
        let clients = self.overlay.limits().clients;
        // bound: the clients
        for next in 0..clients {
            if leader.tail >= limit {
                break;
            }
            let number = leader.turn.saturating_add(next).checked_rem(clients).unwrap_or(0);
            self.propose_client(leader, ClientNumber(number), limit, step)?;
        }
        leader.turn = leader.turn.saturating_add(1).checked_rem(clients).unwrap_or(0);
        Ok(())
    }

    /// Returns the log index up to which the log has room.
    fn log_limit<F, M: Memory>(&mut self, step: &StepContext<'_, F, M>) -> Result<u64, Halt> {
        let mut low = self.delivered;
        // bound: the replicas of the group
        for link in self.links.peers() {
            let follow = &self.state.at(link).follow;
            let is_given_up = follow.stage == FollowStage::Behind || !self.is_heard(step.now, link);
            if rank_of(link) != self.id.rank && !is_given_up {
                low = low.min(self.delivered_by(link, step.memory)?);
            }
            // An entry must not change while a write to any peer may still read it.
            low = low.min(follow.under_way().unwrap_or(low));
        }
        let low = low.min(self.keep_for_children(step)?);
        Ok(low.saturating_add(u64::from(self.shape.entries())))
    }

    /// Gives up the connections to silent peers whose outstanding writes prevent the reuse of log
    /// slots.
    fn cut_silent<F: Fabric, M>(&mut self, step: &mut StepContext<'_, F, M>) {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let state = self.state.at(link);
            let holds_up = state.attached.is_ready() && state.follow.under_way().is_some();
            if holds_up && !self.is_heard(step.now, link) {
                self.give_up(link, step);
            }
        }
    }

    /// Proposes a null as a leader's first entry if an earlier leader may have passed messages on
    /// early.
    fn propose_null(&mut self, leader: &mut Leader, limit: u64, log: Log<'_>) -> Result<(), Halt> {
        if leader.owes_null && leader.tail < limit {
            leader.owes_null = false;
            self.append(leader, Content::Null { timestamp: self.promised }, log)?;
        }
        Ok(())
    }

    /// Proposes that returning replicas that have everything count in quorums again (TRM-5).
    fn propose_admissions<F, M: Memory>(
        &mut self,
        leader: &mut Leader,
        limit: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let Some((_, row)) = step.memory.link(link) else { continue };
            let standing = Standing::from_cell(row.cell(peer_row::STANDING)?.load());
            let state = self.state.at_mut(link);
            let incarnation = standing.incarnation;
            let is_due = state.follow.stage == FollowStage::Synced
                && !state.follow.is_voter
                && state.follow.admitting != Some(incarnation);
            if is_due && leader.tail < limit {
                state.follow.admitting = Some(incarnation);
                let content = Content::Admit { rank: rank_of(link), incarnation };
                self.append(leader, content, step.log)?;
            }
        }
        Ok(())
    }

    /// Takes the messages that the parent's replicas have passed on.
    fn propose_parents<F: Fabric, M: Memory>(
        &mut self,
        leader: &mut Leader,
        limit: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: two turns. Decided messages precede those that may still be replaced: a deposed
        // leader publishes messages that the next leader does not have.
        for is_decided in [true, false] {
            // bound: the replicas of the parent
            for link in self.links.parents() {
                if !self.is_ready(link) {
                    continue;
                }
                let Some((_, row)) = step.memory.link(link) else { continue };
                self.progress.looked = self.progress.looked.saturating_add(1);
                let count = self.counts.source(Source::Parent, UpTo::Proposed);
                let confirmed = row.cell(feed_row::CONFIRMED)?.load();
                // Messages that were passed on early by a leader before the leader of the last null
                // may be lost, and nothing need take their positions.
                let feeder = self.links.role(link).and_then(|role| match role {
                    LinkRole::Parent(rank) => Some(rank),
                    _ => None,
                });
                let is_current =
                    count.incarnation == 0 || count.incarnation == parent_leader(feeder);
                if is_decided == (confirmed > count.next.0) && (is_decided || is_current) {
                    self.take_from(leader, Source::Parent, link, row, limit, step)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the messages that a client has multicast to this group, after the entry that opens the
    /// client.
    fn propose_client<F: Fabric, M: Memory>(
        &mut self,
        leader: &mut Leader,
        client: ClientNumber,
        limit: u64,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let link = self.links.client(client);
        let state = self.state.at(link);
        let (attached, is_bad) = (state.attached, state.is_bad);
        let count = self.counts.client(client, UpTo::Proposed);
        let is_there = attached.stage == Stage::Ready && !is_bad;
        let Some((_, row)) = step.memory.link(link).filter(|_| is_there) else {
            let is_over = is_bad || step.now.since(attached.since) > self.options.lease_ns;
            if count.is_open && is_over && attached.stage != Stage::Waiting {
                let content = Content::Close { client, incarnation: count.incarnation };
                self.append(leader, content, step.log)?;
            }
            return Ok(());
        };
        self.progress.looked = self.progress.looked.saturating_add(1);
        let incarnation = attached.incarnation;
        let is_going = row.cell(feed_row::LEAVES)?.load() == 1;
        let has_messages = row.cell(feed_row::WRITTEN)?.load() > 0;
        if !is_current(count, incarnation) {
            let is_new = incarnation > count.incarnation;
            if !is_new || !has_messages {
                return Ok(());
            }
            // There is room for one entry, because otherwise this client would not be examined.
            self.append(leader, Content::Open { client, incarnation }, step.log)?;
        }
        self.take_from(leader, Source::Client(client), link, row, limit, step)?;
        let count = self.counts.client(client, UpTo::Proposed);
        let is_done = row.cell(feed_row::WRITTEN)?.load() <= count.next.0;
        if is_going && is_done && leader.tail < limit {
            self.append(leader, Content::Close { client, incarnation }, step.log)?;
        }
        Ok(())
    }

    /// Takes all messages that one source has in one ring, as far as the log has room.
    fn take_from<F: Fabric, M: Memory>(
        &mut self,
        leader: &mut Leader,
        source: Source,
        link: LinkId,
        row: Row<'_>,
        limit: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let shape = self.shape;
        let ring = match source {
            Source::Parent => Ring::of_parent(&shape),
            Source::Client(_) => Ring::of_client(&shape),
        };
        // bound: a window
        for _ in 0..ring.window {
            if leader.tail >= limit || leader.run_bytes >= self.options.run_bytes {
                break;
            }
            let count = self.counts.source(source, UpTo::Proposed);
            let fed = match ring.look(row, count.next) {
                Ok(None) => break,
                Ok(Some(fed)) if self.is_acceptable(source, count, &fed) => fed,
                _ => {
                    self.state.at_mut(link).is_bad = true;
                    break;
                }
            };
            step.fabric.observe_barrier();
            let length = u64::from(fed.length);
            if self.shape.is_reference(fed.length) {
                if !self.take_body(leader, source, count.next, &fed, row, step)? {
                    break;
                }
            } else {
                step.log.clear(leader.tail)?;
                let payload = self.shape.payload(leader.tail);
                let from = ring.payload(count.next);
                step.log.memory().copy_from(payload, &row, from, whole_cells(fed.length))?;
                self.progress.copied_bytes = self.progress.copied_bytes.saturating_add(length);
            }
            leader.run_bytes = leader.run_bytes.saturating_add(length);
            let message = Message {
                source,
                ordinal: count.next,
                id: fed.id,
                destinations: fed.destinations,
                length: fed.length,
            };
            self.append(leader, Content::Message(message), step.log)?;
        }
        Ok(())
    }

    /// Returns whether a message may come from its source. A message from the parent must be a
    /// null, or must be for groups that this group reaches. A client's message must have the
    /// client's own name, and this group must be the lowest common ancestor of its destinations.
    fn is_acceptable(&self, source: Source, count: SourceCount, fed: &Fed) -> bool {
        match source {
            Source::Parent => {
                fed.is_null() || fed.destinations.meets(self.overlay.reach(self.id.group))
            }
            Source::Client(client) => {
                fed.id.client == client
                    && fed.id.incarnation == count.incarnation
                    && self.overlay.lowest_common_ancestor(fed.destinations) == Some(self.id.group)
            }
        }
    }

    /// Appends an entry to the local log.
    fn append(&mut self, leader: &mut Leader, content: Content, log: Log<'_>) -> Result<(), Halt> {
        let mut positions = Positions::new();
        // bound: the children
        for (child, state) in self.children.iter().enumerate() {
            let goes_there = match content {
                Content::Message(message) => message.destinations.meets(state.reach),
                Content::Null { .. } => true,
                _ => false,
            };
            let position = goes_there.then(|| self.counts.child(child, UpTo::Proposed));
            // The push cannot fail: both lists have the same bound.
            let _ = positions.push(position);
        }
        let entry = Entry { content, positions };
        self.counts.count(&entry, UpTo::Proposed)?;
        log.store(leader.tail, &entry)?;
        leader.tail = leader.tail.saturating_add(1);
        log.set_tail(leader.tail)?;
        self.progress.proposed = self.progress.proposed.saturating_add(1);
        Ok(())
    }
}

fn is_current(count: SourceCount, incarnation: u32) -> bool {
    count.is_open && count.incarnation == incarnation
}
