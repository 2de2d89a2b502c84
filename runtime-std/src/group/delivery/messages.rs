//! The messages of one batch, as passed to the application.

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Batch;

use super::message::{Message, message_of};
use crate::group::clients::order::subgroup_order::{SubgroupOrder, Taken};
use crate::group::description::view::View;
use crate::group::large::Large;

/// The source of the messages.
pub(crate) enum MessageSource<'b, 'a> {
    /// A step for which nothing else needs to be checked.
    Plain {
        batch: &'b mut Batch<'a>,
        view: &'b View,
    },
    /// A step that may deliver large messages or have joining nodes.
    Live {
        batch: &'b mut Batch<'a>,
        view: &'b View,
        large: &'b Large,
    },
    Replayed(Option<Message<'a>>),
    /// The messages of another source, filtered for the application.
    Ordered {
        sent: &'b mut (dyn SentMessages<'b> + 'b),
        order: &'b mut SubgroupOrder,
    },
}

/// Messages as they were sent, which may come from clients.
pub(crate) trait SentMessages<'s> {
    /// Returns the next message, without showing it to the tap.
    fn next_sent(&mut self) -> Option<Message<'s>>;

    /// Shows a message that is not a duplicate to the tap.
    fn keep(&mut self, sent: &Message<'_>);
}

impl<'s, 'b: 's> SentMessages<'s> for Messages<'b, '_> {
    fn next_sent(&mut self) -> Option<Message<'s>> {
        self.next_untapped()
    }

    fn keep(&mut self, sent: &Message<'_>) {
        if let Some(tap) = &mut self.tap {
            tap(sent);
        }
    }
}

/// The messages of one subgroup, in order.
pub struct Messages<'b, 'a> {
    subgroup: SubgroupId,
    source: MessageSource<'b, 'a>,
    tap: Option<&'b mut dyn FnMut(&Message<'_>)>,
}

impl<'b, 'a> Messages<'b, 'a> {
    /// Wraps the messages that a step delivers, none of which is large.
    #[inline]
    pub(crate) fn plain(batch: &'b mut Batch<'a>, view: &'b View) -> Self {
        Self { subgroup: batch.subgroup(), source: MessageSource::Plain { batch, view }, tap: None }
    }

    /// Wraps the messages that a step delivers. `tap` sees every message once, taken or not, if
    /// [`Messages::finish`] is called.
    pub(crate) fn live(
        batch: &'b mut Batch<'a>,
        view: &'b View,
        large: &'b Large,
        tap: Option<&'b mut dyn FnMut(&Message<'_>)>,
    ) -> Self {
        Self { subgroup: batch.subgroup(), source: MessageSource::Live { batch, view, large }, tap }
    }

    /// Wraps one message that was delivered before this member joined.
    pub(crate) fn replayed(message: Message<'a>) -> Self {
        Self {
            subgroup: message.subgroup,
            source: MessageSource::Replayed(Some(message)),
            tap: None,
        }
    }

    /// Filters the messages of `sent` that are for the application, in a subgroup that accepts
    /// clients.
    pub(crate) fn ordered<'s: 'b>(
        sent: &'b mut Messages<'s, '_>,
        order: &'b mut SubgroupOrder,
    ) -> Self {
        Self { subgroup: sent.subgroup, source: MessageSource::Ordered { sent, order }, tap: None }
    }

    /// Returns the subgroup that all messages of the batch belong to.
    #[must_use]
    pub const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Passes all remaining messages to `with`, in order. It does the same as a loop over the
    /// iterator, and is faster for small messages.
    #[inline(always)]
    pub fn for_each(&mut self, mut with: impl FnMut(Message<'b>)) {
        if let MessageSource::Plain { batch, view } = &mut self.source {
            let subgroup = self.subgroup;
            batch.for_each(|message| with(message_of(subgroup, view, &message, message.payload)));
        } else {
            self.pass_other(&mut with);
        }
    }

    /// Passes messages that may need something else besides.
    #[inline(never)]
    fn pass_other(&mut self, with: &mut impl FnMut(Message<'b>)) {
        while let Some(message) = self.next_of_any() {
            with(message);
        }
    }

    /// Skips the remaining messages.
    pub(crate) fn finish(mut self) {
        if self.tap.is_some() || matches!(self.source, MessageSource::Ordered { .. }) {
            while self.next().is_some() {}
        }
    }
}

impl<'b> Iterator for Messages<'b, '_> {
    type Item = Message<'b>;

    #[inline(always)]
    fn next(&mut self) -> Option<Message<'b>> {
        if let MessageSource::Plain { batch, view } = &mut self.source {
            let message = batch.next()?;
            return Some(message_of(self.subgroup, view, &message, message.payload));
        }
        // Destructured, because a message returned by a call lives in memory, but the usual one
        // need not.
        let Message { subgroup, view, place, sender, payload, client, is_large, is_replayed } =
            self.next_of_any()?;
        Some(Message { subgroup, view, place, sender, payload, client, is_large, is_replayed })
    }
}

impl<'b> Messages<'b, '_> {
    fn next_of_any(&mut self) -> Option<Message<'b>> {
        let message = self.next_untapped()?;
        if let Some(tap) = &mut self.tap {
            tap(&message);
        }
        Some(message)
    }

    fn next_untapped(&mut self) -> Option<Message<'b>> {
        Some(match &mut self.source {
            MessageSource::Replayed(message) => message.take()?,
            MessageSource::Plain { batch, view } => {
                let message = batch.next()?;
                message_of(self.subgroup, view, &message, message.payload)
            }
            MessageSource::Ordered { sent, order } => loop {
                // The application must learn of the forgotten client first.
                if order.has_forgotten() {
                    return None;
                }
                let raw = sent.next_sent()?;
                match order.take(&raw) {
                    Taken::Duplicate => {}
                    Taken::Word => sent.keep(&raw),
                    Taken::Message(message) => {
                        sent.keep(&raw);
                        break message;
                    }
                }
            },
            MessageSource::Live { large, .. } if large.is_mistold() => return None,
            MessageSource::Live { batch, view, large } => {
                let message = batch.next()?;
                let payload = match message.large {
                    None => message.payload,
                    Some(number) => {
                        large.payload(self.subgroup, message.rank, number, message.payload)?
                    }
                };
                message_of(self.subgroup, view, &message, payload)
            }
        })
    }
}

impl std::fmt::Debug for Messages<'_, '_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Messages").field("subgroup", &self.subgroup).finish_non_exhaustive()
    }
}
