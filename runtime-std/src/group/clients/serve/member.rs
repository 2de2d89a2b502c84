//! A member as its clients see it: the subgroups that it serves to them, and their status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tramontane_control::Source;
use tramontane_control::client_messages::{ClientLife, ClientRefusal, GroupAnswer, Level, Target};
use tramontane_core::fabric::LocalBell as _;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::node::DurableCounts;

use super::cut::Cut;
use super::outlet::Outlet;
use crate::fabric::AnyBell;
use crate::group::clients::order::feed::Feed;
use crate::group::clients::order::table::Known;
use crate::group::clients::origin::Origin;
use crate::group::description::view::View;
use crate::group::engine::participant::Participant;

/// Time limit for a client's first request.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// The member that serves clients.
pub(crate) struct ServedMember {
    participant: Arc<Participant>,
    pub(crate) feed: Arc<Feed>,
    /// The subgroups in which this node sends.
    outlets: BTreeMap<SubgroupId, Outlet>,
    bell: AnyBell,
}

impl ServedMember {
    pub(crate) const fn new(
        participant: Arc<Participant>,
        feed: Arc<Feed>,
        outlets: BTreeMap<SubgroupId, Outlet>,
        bell: AnyBell,
    ) -> Self {
        Self { participant, feed, outlets, bell }
    }

    /// Wakes the thread that drives the member.
    pub(crate) fn ring(&self) {
        self.bell.ring_if_asleep();
    }

    /// Returns whether this member has left the group.
    pub(crate) fn has_ended(&self) -> bool {
        self.participant.ending.stopped().is_some()
    }

    /// Returns the time limit for a client's first request.
    pub(crate) const fn first_word(&self) -> Duration {
        FIRST_WORD
    }

    pub(crate) fn outlet(&mut self, subgroup: SubgroupId) -> Option<&mut Outlet> {
        self.outlets.get_mut(&subgroup)
    }

    /// All outlets.
    pub(crate) fn outlets(&mut self) -> impl Iterator<Item = &mut Outlet> {
        self.outlets.values_mut()
    }

    pub(crate) fn line_max(&self, subgroup: SubgroupId) -> u32 {
        let of = self.participant.description.subgroups.get(subgroup.index());
        of.map_or(0, |subgroup| subgroup.message_max)
    }

    pub(crate) fn lease_ms(&self, subgroup: SubgroupId) -> u64 {
        let of = self.participant.description.subgroups.get(subgroup.index());
        of.map_or(0, |subgroup| subgroup.client_lease_ms)
    }

    pub(crate) fn name(&self, subgroup: SubgroupId) -> String {
        let of = self.participant.description.subgroups.get(subgroup.index());
        of.map_or_else(String::new, |subgroup| subgroup.name.clone())
    }

    /// Returns the sequence position after the last message.
    pub(crate) fn end(&self, subgroup: SubgroupId) -> u64 {
        self.feed.lock().subgroups.get(&subgroup).map_or(0, |of| of.retained.end())
    }

    /// Returns the number of durable records of a subgroup.
    pub(crate) fn durable(&self, subgroup: SubgroupId) -> DurableCounts {
        self.feed
            .lock()
            .subgroups
            .get(&subgroup)
            .map_or_else(DurableCounts::default, |of| of.durable)
    }

    /// Returns the lowest level of a subgroup at which messages survive any crash.
    pub(crate) fn safe_level(&self, subgroup: SubgroupId) -> Level {
        let of = self.participant.description.subgroups.get(subgroup.index());
        let is_logged = of.is_some_and(|subgroup| subgroup.logged);
        if is_logged { Level::DurableMajority } else { Level::Delivered }
    }

    /// Returns whether a subgroup is reserved, that is, opened and closed by views.
    pub(crate) fn is_reserved(&self, subgroup: SubgroupId) -> bool {
        let of = self.participant.description.subgroups.get(subgroup.index());
        of.is_some_and(|subgroup| subgroup.reserved)
    }

    /// Discards control messages that are waiting in a closed subgroup, so that they do not reach
    /// its successor.
    pub(crate) fn discard_closed(&mut self) {
        let Self { participant, feed, outlets, .. } = self;
        if !participant.description.has_reserved() {
            return;
        }
        let told = feed.lock();
        let is_closed =
            |id: &SubgroupId| told.subgroups.get(id).is_some_and(|of| !of.standing.is_open);
        let closed = outlets.iter_mut().filter(|(id, _)| is_closed(id));
        closed.for_each(|(_, outlet)| outlet.discard());
    }

    /// Returns the subgroup that a client asks for, if this member serves it to that client. A
    /// client that `goes_on` may receive the remaining messages of a closed subgroup.
    pub(crate) fn place(
        &self,
        target: &Target<'_>,
        level: Level,
        goes_on: bool,
    ) -> Result<SubgroupId, ClientRefusal> {
        let description = &self.participant.description;
        if !target.group.is_empty() && target.group != description.name {
            return Err(ClientRefusal::OtherGroup);
        }
        let mut subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        let wanted = subgroups.find(|(_, subgroup)| {
            subgroup.clients && (target.subgroup.is_empty() || target.subgroup == subgroup.name)
        });
        let (id, of) = wanted.ok_or(ClientRefusal::NoSubgroup)?;
        let (is_logged, is_reserved) = (of.logged, of.reserved);
        if level != Level::Delivered && !is_logged {
            return Err(ClientRefusal::NotLogged);
        }
        let told = self.feed.lock();
        let view = told.view.as_ref().ok_or(ClientRefusal::NotNow)?;
        let own = self.participant.own;
        let has_rest =
            || is_reserved && told.subgroups.get(&id).is_some_and(|of| of.standing.has_rest);
        let is_here = match view.is_closed(id) {
            true => goes_on && has_rest(),
            false => view.subgroup_members(description, id).contains(&own),
        };
        if is_here { Ok(id) } else { Err(ClientRefusal::NotHere) }
    }

    /// Asks the group to attach a client here.
    pub(crate) fn attach(
        &mut self,
        subgroup: SubgroupId,
        (life, source): (ClientLife, Source),
        is_new: bool,
    ) -> Result<(), Cut> {
        let not_here = Cut::Refused(ClientRefusal::NotHere);
        let outlet = self.outlets.get_mut(&subgroup).ok_or(not_here)?;
        let mut told = self.feed.lock();
        if let Some(of) = told.subgroups.get_mut(&subgroup) {
            of.served.insert(life);
        }
        drop(told);
        outlet.put_word(Origin::Attach { life, is_new, source });
        Ok(())
    }

    /// Removes a client that has disconnected.
    pub(crate) fn forget(&self, subgroup: SubgroupId, life: ClientLife) {
        if let Some(of) = self.feed.lock().subgroups.get_mut(&subgroup) {
            of.served.remove(&life);
        }
    }

    /// Returns the known clients of a subgroup, the local node's id, and the members of the view
    /// that send in the subgroup.
    pub(crate) fn leases_of(&self, subgroup: SubgroupId) -> (Arc<[Known]>, NodeId, Vec<NodeId>) {
        let told = self.feed.lock();
        let known = told.subgroups.get(&subgroup).map(|of| Arc::clone(&of.known));
        let senders = told.view.as_ref().map(|view| self.senders(view, subgroup));
        (known.unwrap_or_default(), self.participant.own, senders.unwrap_or_default())
    }

    fn senders(&self, view: &View, subgroup: SubgroupId) -> Vec<NodeId> {
        let description = &self.participant.description;
        let mut members = view.subgroup_members(description, subgroup);
        if let Some(of) = description.subgroups.get(subgroup.index()) {
            members.retain(|node| of.senders().contains(&node.get()));
        }
        members
    }

    /// Returns the subgroups that accept clients.
    pub(crate) fn subgroups(&self) -> Vec<SubgroupId> {
        self.feed.lock().subgroups.keys().copied().collect()
    }

    /// Returns the status of a subgroup.
    pub(crate) fn answer(&self, subgroup: SubgroupId) -> Result<GroupAnswer, Cut> {
        let first = self.feed.first(subgroup);
        let told = self.feed.lock();
        let not_now = || Cut::Refused(ClientRefusal::NotNow);
        let (Some(view), Some(of)) = (&told.view, told.subgroups.get(&subgroup)) else {
            return Err(not_now());
        };
        Ok(GroupAnswer {
            group: self.participant.description.name.clone(),
            subgroup: self.name(subgroup),
            node: self.participant.own.get(),
            view: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            first,
            reached: of.reached(),
            clients: u64::try_from(of.known.len()).unwrap_or(u64::MAX),
            line_max: self.line_max(subgroup),
        })
    }
}
