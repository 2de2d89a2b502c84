//! The host's side of the fabric: the memory of views, and sleep.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use tramontane_core::fabric::{ErrorKind, HostFabric, ViewPlan};
use tramontane_core::ids::Rank;

use super::cards::Cards;
use super::fabric::{NoView, OpenView, RdmaViews};
use crate::site::{Rows, ViewOptions, ring_places};

impl<S: HostFabric<Error = ErrorKind> + AsFd> RdmaViews<S> {
    /// Waits for a socket, this member's wakeup or a device.
    fn wait(&self, timeout: Duration) {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 1];
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // An interrupted wait ends early.
        let _ = epoll::wait(&self.descriptors, &mut events, Some(&timeout));
    }
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> HostFabric for RdmaViews<S> {
    type Bell = S::Bell;
    type Rows = Rows;
    type MemoryError = NoView;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Rows, NoView> {
        self.has_made_views = true;
        self.forgotten.extend(self.made.extract_if(.., |made| made.verbs.rows().is_alone()));
        let (members, id) = (plan.members(), plan.view());
        let ranks = (0..).map(Rank).take(members.len());
        let row_bytes: Vec<usize> = ranks.map(|rank| plan.row_bytes(rank)).collect();
        // This comes first because it checks whether this member has the rank.
        let connections = 1 + self.regions.len() + usize::from(plan.has_blocks());
        let relayed: Vec<_> = plan.relayed().collect();
        let rings = ring_places(&relayed);
        let cards = Cards::new(&mut self.side_channel, plan, connections, rings);
        let cards = cards.map_err(|error| NoView::SideChannel(error.into()))?;
        self.renew_device()?;
        let verbs = self.site.view(&ViewOptions {
            view: id,
            own: plan.own(),
            members,
            row_bytes: &row_bytes,
            relayed: &relayed,
            regions: &self.regions,
            blocks: plan.has_blocks(),
        })?;
        let rows = verbs.rows().clone();
        self.made.push(OpenView {
            id,
            verbs,
            cards,
            is_retiring: false,
            has_ended_on_side_channel: false,
            is_watched: false,
        });
        Ok(rows)
    }

    fn local_bell(&self) -> S::Bell {
        self.side_channel.local_bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let is_called =
                self.side_channel.sleep(Duration::ZERO) | self.site.workers().take_news();
            self.is_look_due |= is_called;
            let (_, is_told) = self.check_device();
            let is_written = self.views.iter_mut().any(|view| view.verbs.sleep(Duration::ZERO));
            if is_called || is_told || is_written {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wait(left);
        }
    }

    fn check_peers(&mut self) -> bool {
        self.look_at_side_channel();
        let (_, is_news) = self.check_device();
        self.retire_rest();
        is_news
    }

    fn leave(&mut self) {
        for view in &mut self.views {
            view.verbs.leave();
        }
        self.side_channel.leave();
    }
}
