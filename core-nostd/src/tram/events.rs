//! The events that a replica takes from its fabric: completions, lost peers, denied writes.
//!
//! Requirement: TRM-8.

use super::common::{Common, LinkState};
use super::follow::Follow;
use super::link::{LinkId, Stage};
use super::role::Role;
use super::step::StepContext;
use super::token::{CAMPAIGNS, Ticket, Work};
use crate::fabric::{Event, Fabric, PermissionEvent, Permissions};
use crate::ids::{Time, ViewId};

/// Maximum number of events taken in a step.
const EVENTS_MAX: usize = 1024;

impl Common<'_> {
    pub(super) fn take_events<F: Fabric + Permissions, M>(
        &mut self,
        role: &mut Role,
        step: &mut StepContext<'_, F, M>,
    ) {
        // bound: EVENTS_MAX; later events are taken in the next step
        for _ in 0..EVENTS_MAX {
            match step.fabric.poll() {
                None => break,
                Some(Event::Completed(token)) => {
                    if let Some(ticket) = Ticket::of(token) {
                        self.completed(ticket);
                    }
                }
                Some(Event::PeerLost { view, .. }) => {
                    if let Some(link) = self.link_of(view) {
                        self.lose(link, step.now);
                        role.end_without(link);
                    }
                }
                Some(Event::Ready { .. } | Event::Woken) => {}
            }
            self.progress.events = self.progress.events.saturating_add(1);
        }
        // bound: EVENTS_MAX
        for _ in 0..EVENTS_MAX {
            match step.fabric.poll_permission() {
                None => break,
                Some(PermissionEvent::Denied { view, .. }) => {
                    if let Some(link) = self.link_of(view) {
                        self.denied(link);
                        role.end_without(link);
                    }
                }
                Some(PermissionEvent::Restored { .. }) => {}
            }
        }
    }

    fn completed(&mut self, ticket: Ticket) {
        let is_of_this_campaign = ticket.campaign == self.campaigns.number & (CAMPAIGNS - 1);
        let follow = &mut self.state.at_mut(ticket.link).follow;
        match ticket.work {
            Work::Append => {
                follow.landed();
                if is_of_this_campaign {
                    follow.appended(ticket.sequence);
                }
            }
            Work::CopyHeaders => {
                if is_of_this_campaign {
                    follow.copied(ticket.sequence);
                }
            }
            Work::CopyPayload => {
                if is_of_this_campaign {
                    self.payload_came();
                }
            }
        }
    }

    /// Returns the link of a view.
    fn link_of(&self, view: ViewId) -> Option<LinkId> {
        let is_its = |state: &LinkState| {
            state.attached.view == view && state.attached.stage != Stage::Absent
        };
        let index = self.state.iter().position(is_its)?;
        u16::try_from(index).ok().map(LinkId)
    }

    /// Handles the loss of a link's peer.
    fn lose(&mut self, link: LinkId, now: Time) {
        let state = self.state.at_mut(link);
        state.attached.stage = Stage::Lost;
        state.attached.since = now;
        state.heard_at = None;
        state.follow = Follow::default();
        self.forget_reads(link);
        self.progress.lost = self.progress.lost.saturating_add(1);
    }

    /// Cuts the connection to a peer, and handles the peer as lost.
    pub(super) fn give_up<F: Fabric, M>(&mut self, link: LinkId, step: &mut StepContext<'_, F, M>) {
        let attached = self.state.at(link).attached;
        step.fabric.cut(attached.view, attached.peer);
        self.lose(link, step.now);
    }

    /// Forgets a campaign's reads from a peer, because not all of them will arrive.
    pub(super) fn forget_reads(&mut self, link: LinkId) {
        self.campaigns.reads = self.campaigns.reads.filter(|(from, _)| *from != link);
    }

    fn denied(&mut self, link: LinkId) {
        self.state.at_mut(link).follow.refused();
        self.forget_reads(link);
        self.progress.denied = self.progress.denied.saturating_add(1);
    }

    pub(super) fn make_ready<F: Fabric, M>(&mut self, step: &StepContext<'_, F, M>) {
        // bound: the links
        for state in self.state.iter_mut() {
            let attached = &mut state.attached;
            if attached.stage == Stage::Waiting && step.fabric.ready(attached.view, attached.peer) {
                attached.stage = Stage::Ready;
                attached.since = step.now;
                attached.dirty = true;
            }
        }
    }
}
