//! What a replica takes from its fabric: completions, lost peers, denied writes.
//!
//! Requirement: TRM-8.

use super::follow::Follow;
use super::link::{LinkId, Stage};
use super::replica::{LinkState, Replica};
use super::token::{CAMPAIGNS, Ticket, Work};
use crate::fabric::{Event, Fabric, PermissionEvent, Permissions};
use crate::ids::{Time, ViewId};

/// The most events that a step takes.
const EVENTS_MAX: usize = 1024;

impl Replica<'_> {
    pub(super) fn take_events<F: Fabric + Permissions>(&mut self, now: Time, fabric: &mut F) {
        // bound: EVENTS_MAX; what comes later is taken in the next step
        for _ in 0..EVENTS_MAX {
            match fabric.poll() {
                None => break,
                Some(Event::Completed(token)) => {
                    if let Some(ticket) = Ticket::of(token) {
                        self.completed(ticket);
                    }
                }
                Some(Event::PeerLost { view, .. }) => self.lose(now, view),
                Some(Event::Ready { .. } | Event::Woken) => {}
            }
            self.progress.events = self.progress.events.saturating_add(1);
        }
        // bound: EVENTS_MAX
        for _ in 0..EVENTS_MAX {
            match fabric.poll_permission() {
                None => break,
                Some(PermissionEvent::Denied { view, .. }) => self.denied(view),
                Some(PermissionEvent::Restored { .. }) => {}
            }
        }
    }

    fn completed(&mut self, ticket: Ticket) {
        let is_of_this_campaign = ticket.campaign == self.campaigns & (CAMPAIGNS - 1);
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

    /// The link of a view.
    fn link_of(&self, view: ViewId) -> Option<LinkId> {
        let is_its = |state: &LinkState| {
            state.attached.view == view && state.attached.stage != Stage::Absent
        };
        let index = self.state.iter().position(is_its)?;
        u16::try_from(index).ok().map(LinkId)
    }

    /// The peer of a view is lost.
    pub(super) fn lose(&mut self, now: Time, view: ViewId) {
        let Some(link) = self.link_of(view) else { return };
        let state = self.state.at_mut(link);
        state.attached.stage = Stage::Lost;
        state.attached.since = now;
        state.heard_at = None;
        state.follow = Follow::default();
        self.forget_reads(link);
        self.progress.lost = self.progress.lost.saturating_add(1);
    }

    fn denied(&mut self, view: ViewId) {
        let Some(link) = self.link_of(view) else { return };
        self.state.at_mut(link).follow.refused();
        self.forget_reads(link);
        self.progress.denied = self.progress.denied.saturating_add(1);
    }

    pub(super) fn make_ready<F: Fabric>(&mut self, now: Time, fabric: &F) {
        // bound: the links
        for state in self.state.iter_mut() {
            let attached = &mut state.attached;
            if attached.stage == Stage::Waiting && fabric.ready(attached.view, attached.peer) {
                attached.stage = Stage::Ready;
                attached.since = now;
                attached.dirty = true;
            }
        }
    }
}
