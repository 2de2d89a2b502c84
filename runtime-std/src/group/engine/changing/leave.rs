//! Decides when a member may leave.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::view::Status;

use super::Engine;
use crate::group::delivery::application::Application;
use crate::group::join::admission::Admission;
use crate::member::Stopped;
use crate::poll::nanoseconds;

/// The maximum wait for nodes that another member could supply equally well.
pub(crate) const SUPPLIED_MAX: Duration = Duration::from_secs(3);

/// The maximum wait for nodes that are receiving state that no other member has.
pub(crate) const NEEDED_MAX: Duration = Duration::from_secs(20);

impl<A: Application> Engine<A> {
    pub(crate) const fn is_leaving(&self) -> bool {
        self.leaving.is_leaving()
    }

    pub(crate) fn begin_to_leave(&mut self) -> Result<(), Stopped> {
        self.leaving.since.get_or_insert(self.clock.now());
        self.leave_when_free()
    }

    /// Asks the group to continue without this member once no node depends on it.
    pub(crate) fn leave_when_free(&mut self) -> Result<(), Stopped> {
        let Some(since) = self.leaving.since.filter(|_| !self.leaving.is_asked) else {
            return Ok(());
        };
        let wait = if self.is_needed() { NEEDED_MAX } else { SUPPLIED_MAX };
        if self.joiners.are_under_way() && self.clock.now() < since.after(nanoseconds(wait)) {
            return Ok(());
        }
        if self.view.members.len() == 1 {
            // The member that left before this one may not know yet that the next view has been
            // decided. If it were the only one left, it would have no majority.
            return if self.ended.is_none() { Err(Stopped::Left) } else { Ok(()) };
        }
        self.leaving.is_asked = true;
        self.present.change(|node| node.leave());
        Ok(())
    }

    /// Returns whether a joining node is receiving state that no other member has.
    fn is_needed(&self) -> bool {
        let description = &self.parts.participant.description;
        let is_alone =
            |subgroup: SubgroupId| self.view.subgroup_members(description, subgroup).len() == 1;
        self.view.members.len() == 1 || self.joiners.any_supplied(is_alone)
    }

    /// Ends this member, which is no longer in the view. Nodes that the new view has admitted still
    /// need the messages of the previous view that this member supplies. The member ends once these
    /// nodes have received those messages and its peers have everything that they need.
    pub(crate) fn go(&mut self) -> Result<(), Stopped> {
        let until = match self.leaving.out_until {
            Some(until) => until,
            None => {
                let until =
                    self.clock.now().after(self.parts.participant.view_options().first_timeout_ns);
                self.leaving.out_until = Some(until);
                self.tell_joiners();
                until
            }
        };
        let is_free = self.joiners.are_told() || self.clock.now() >= until;
        if is_free && self.present.read(|node| node.is_all_posted()) {
            Err(Stopped::Left)
        } else {
            Ok(())
        }
    }

    fn tell_joiners(&mut self) {
        debug_assert_eq!(self.present.read(|node| node.status()), Status::Left, "it is out");
        let Some(members) = self.present.next_list() else { return };
        let description = &self.parts.participant.description;
        let next = self.view.next(description, &members);
        let admission = Arc::new(Admission::after(&mut self.present, next, description));
        self.joiners.view_ends(&self.present, &admission);
    }
}
