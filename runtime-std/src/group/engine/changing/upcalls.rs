//! The application's upcalls.

use tramontane_core::ids::Time;
use tramontane_core::multicast::{self, Batch};

use crate::group::delivery::application::Application;
use crate::group::delivery::message::Message;
use crate::group::delivery::messages::Messages;
use crate::group::description::view::View;
use crate::group::durable::Logs;
use crate::group::large::Large;
use crate::group::supply::joiners::Joiners;
use crate::poll::Clock;

/// Passes stable messages to the application, to logs, and to the joining nodes that are being
/// supplied.
pub(crate) struct Upcalls<'e, A> {
    pub(crate) view: &'e View,
    pub(crate) large: &'e mut Large,
    pub(crate) joiners: &'e mut Joiners,
    pub(crate) logs: &'e mut Logs,
    pub(crate) application: &'e mut A,
    pub(crate) clock: &'e mut Clock,
}

impl<A: Application> multicast::Application for Upcalls<'_, A> {
    #[inline]
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        let Self { view, large, joiners, logs, application, .. } = self;
        // A message delivered here has already been queued, but its bytes may not have been fetched
        // yet.
        large.receive_message();
        let large = &**large;
        if large.is_mistold() {
            return;
        }
        let is_tapped = !joiners.is_empty() || logs.has(batch.subgroup());
        if !is_tapped && large.has_none() {
            return application.deliver(&mut Messages::plain(batch, view));
        }
        if !is_tapped {
            return application.deliver(&mut Messages::live(batch, view, large, None));
        }
        let mut tap = |message: &Message<'_>| {
            logs.append(message);
            joiners.tap(message);
        };
        let mut messages = Messages::live(batch, view, large, Some(&mut tap));
        application.deliver(&mut messages);
        messages.finish();
    }

    /// Appends the messages that a log must contain before the view is sealed.
    #[cold]
    fn append(&mut self, batch: &mut Batch<'_>) {
        let Self { view, large, logs, .. } = self;
        large.receive_message();
        let large = &**large;
        if !large.is_mistold() {
            logs.append_ahead(batch.subgroup(), Messages::live(batch, view, large, None));
        }
    }

    #[inline]
    fn now(&mut self, _: Time) -> Time {
        self.clock.read_if_late()
    }
}
