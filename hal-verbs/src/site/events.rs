//! Asynchronous events of the device, read in one place and passed to all views.
//!
//! All views of a site share one context, and an event of a context goes to its first reader.
//! Therefore, only the site reads events ([`Site::check_device`]); it passes their meaning to every
//! view ([`Verbs::hear_device`]).
//!
//! | event | consequence |
//! |---|---|
//! | the device failed | every view loses all its peers; the next view reopens the device |
//! | a completion queue failed | the view of that queue loses all its peers |
//! | a queue pair failed | its peer is lost; a region's connection is re-established |
//! | a port lost its link | nothing yet: the device retransmits until the link is back or the loss time is over; a loss of peers during that time is attributed to the link |
//! | a port came up; its LID, GIDs, partition keys or subnet manager changed | the next view queries the port again |
//!
//! # Invariants
//! - After a device has reported its failure, it is not queried again, because its descriptor may
//!   stay readable forever.
//! - A call reads a bounded number of events. The descriptor stays readable for as long as there
//!   are more.
//!
//! [`Verbs::hear_device`]: crate::Verbs::hear_device

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::Site;
use crate::adapter::AsyncEvent;
use crate::devices::Choice;

/// Maximum number of events read per call.
const EVENTS_MAX: usize = 64;

/// The events of a device that concern views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceNews {
    has_failed: bool,
    has_lost_link: bool,
    completion_queues: Vec<u64>,
    queue_pairs: Vec<u32>,
}

impl DeviceNews {
    /// Returns whether there is nothing that concerns a view.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.has_failed && self.completion_queues.is_empty() && self.queue_pairs.is_empty()
    }

    /// Returns whether the port in use has lost its link, even if the link has returned. Views take
    /// no action.
    pub(crate) const fn has_lost_link(&self) -> bool {
        self.has_lost_link
    }

    /// Returns whether the device has failed or been removed, so that nothing on it works.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns whether the completion queue with this event id has failed.
    pub(crate) fn names_completion_queue(&self, id: u64) -> bool {
        self.completion_queues.contains(&id)
    }

    /// Returns the numbers of the queue pairs that have failed.
    pub(crate) fn queue_pairs(&self) -> &[u32] {
        &self.queue_pairs
    }
}

/// The state of the device according to the events so far.
#[derive(Debug, Default)]
pub(super) struct DeviceEvents {
    has_failed: bool,
    is_port_stale: bool,
    is_link_down: bool,
    link_losses: u64,
}

impl DeviceEvents {
    /// Reads the pending events with `next`, and logs those that need action.
    fn take(
        &mut self,
        mut next: impl FnMut() -> Option<AsyncEvent>,
        choice: &Choice,
        loss_time: Duration,
    ) -> DeviceNews {
        let mut news = DeviceNews::default();
        for _ in 0..EVENTS_MAX {
            if self.has_failed {
                break;
            }
            let Some(event) = next() else { break };
            self.note(event, choice.port, &mut news);
            tell(event, choice, loss_time);
        }
        news
    }

    fn note(&mut self, event: AsyncEvent, own_port: u8, news: &mut DeviceNews) {
        match event {
            AsyncEvent::PortError(port) if port == own_port => {
                (self.is_link_down, news.has_lost_link) = (true, true);
                self.link_losses += 1;
            }
            AsyncEvent::PortActive(port) if port == own_port => self.is_link_down = false,
            _ => {}
        }
        match event {
            AsyncEvent::DeviceFatal => (self.has_failed, news.has_failed) = (true, true),
            AsyncEvent::CompletionQueueError(queue) => news.completion_queues.push(queue),
            AsyncEvent::QueuePairError(number) => news.queue_pairs.push(number),
            // The event may be for any port, because another port may now be the better choice.
            AsyncEvent::PortActive(_)
            | AsyncEvent::PortError(_)
            | AsyncEvent::LidChange(_)
            | AsyncEvent::PkeyChange(_)
            | AsyncEvent::GidChange(_)
            | AsyncEvent::SubnetManager(_) => self.is_port_stale = true,
            AsyncEvent::Other(_) => {}
        }
    }

    /// Returns whether the device has reported its failure.
    pub(super) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Returns whether the port in use has no link, according to the device's events.
    pub(super) const fn is_link_down(&self) -> bool {
        self.is_link_down
    }

    /// Returns the number of times that the port in use has lost its link.
    pub(super) const fn link_losses(&self) -> u64 {
        self.link_losses
    }

    /// Returns whether the known state of the ports may be out of date.
    pub(super) const fn is_port_stale(&self) -> bool {
        self.is_port_stale
    }

    /// Records that the ports have been queried. `is_settled` says whether the result is usable.
    pub(super) const fn looked(&mut self, is_settled: bool) {
        self.is_port_stale = !is_settled;
    }
}

/// Logs one line per event, with the remedy if there is one.
fn tell(event: AsyncEvent, choice: &Choice, loss_time: Duration) {
    let device = choice.name.as_str();
    match event {
        AsyncEvent::DeviceFatal => tracing::error!(
            device,
            "the device failed or was removed, and all peers are lost; check the kernel's log \
             (dmesg); the next view reopens the device if it is back"
        ),
        AsyncEvent::CompletionQueueError(_) => tracing::error!(
            device,
            "a completion queue failed, and its view loses all peers; the next view has a new \
             queue; if this happens again, update the device's firmware and driver"
        ),
        AsyncEvent::QueuePairError(number) => {
            tracing::debug!(device, queue_pair = number, "a queue pair failed");
        }
        AsyncEvent::PortError(port) if port == choice.port => tracing::warn!(
            device,
            port,
            ?loss_time,
            "the port lost its link; peers are lost if it is not back within the loss time, and \
             perhaps at once on a software device; check the cable, the switch and the network \
             interface (ip link)"
        ),
        AsyncEvent::PortActive(port) if port == choice.port => {
            tracing::info!(device, port, "the port's link is up again");
        }
        event => tracing::debug!(device, ?event, "device event"),
    }
}

impl Site {
    /// Reads the device's events since the last call. Because this is a system call, call it from a
    /// timer or after a wakeup, not in a loop. Pass the result to every view of this site
    /// ([`Verbs::hear_device`](crate::Verbs::hear_device)), because each event is returned only
    /// once.
    pub fn check_device(&mut self) -> DeviceNews {
        let Self { context, events, choice, loss_times, .. } = self;
        events.take(|| context.take_event(), choice, loss_times.least())
    }
}

/// The descriptor becomes readable when [`Site::check_device`] has events to read, and may stay
/// readable once the device has failed.
impl AsFd for Site {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.context.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::{Devices, Wanted, samples::rxe};

    fn take(events: &mut DeviceEvents, told: &[AsyncEvent]) -> (DeviceNews, usize) {
        let devices = Devices { devices: vec![rxe()] };
        let choice = devices.choose(&Wanted::default()).expect("a choice");
        let mut left = told.iter().copied();
        let news = events.take(|| left.next(), &choice, Duration::from_secs(1));
        (news, left.len())
    }

    #[test]
    fn failed_queues_are_reported_once_to_views() {
        let mut events = DeviceEvents::default();
        let told = [
            AsyncEvent::CompletionQueueError(7),
            AsyncEvent::QueuePairError(17),
            AsyncEvent::Other(4),
        ];
        let (news, _) = take(&mut events, &told);
        assert!(news.names_completion_queue(7) && !news.names_completion_queue(8));
        assert_eq!((news.queue_pairs(), news.has_failed()), (&[17][..], false));
        assert!(!events.is_port_stale(), "the port is what it was");
        assert!(take(&mut events, &[]).0.is_empty(), "told once");
    }

    #[test]
    fn port_change_loses_no_peer_and_is_requeried() {
        let told = [
            AsyncEvent::PortError(1),
            AsyncEvent::PortActive(1),
            AsyncEvent::LidChange(1),
            AsyncEvent::PkeyChange(1),
            AsyncEvent::GidChange(1),
            AsyncEvent::SubnetManager(1),
            AsyncEvent::GidChange(2),
        ];
        for event in told {
            let mut events = DeviceEvents::default();
            let (news, _) = take(&mut events, &[event]);
            assert!(news.is_empty() && events.is_port_stale(), "{event:?}");
            events.looked(false);
            assert!(events.is_port_stale(), "nothing usable was found, so ports are queried again");
            events.looked(true);
            assert!(!events.is_port_stale());
        }
    }

    #[test]
    fn failed_device_is_queried_only_once() {
        let mut events = DeviceEvents::default();
        let for_ever = [AsyncEvent::DeviceFatal; 5];
        let (news, left) = take(&mut events, &for_ever);
        assert!(news.has_failed() && events.has_failed());
        assert_eq!(left, 4, "one was enough");
        let (news, left) = take(&mut events, &for_ever);
        assert_eq!((news.is_empty(), left), (true, 5));
    }

    #[test]
    fn event_reads_per_poll_are_bounded() {
        let mut events = DeviceEvents::default();
        let (news, left) = take(&mut events, &[AsyncEvent::QueuePairError(3); 100]);
        assert_eq!((news.queue_pairs().len(), left), (64, 36));
    }
}
