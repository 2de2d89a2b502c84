//! Wraps an application in the clients' order, so that the application receives no duplicates and
//! its state is stored together with the client records.

use std::collections::BTreeMap;
use std::io;
use std::io::{Cursor, Read};
use std::sync::Arc;

use tramontane_control::client_messages::ClientId;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::node::DurableCounts;

use super::feed::Feed;
use super::subgroup_order::SubgroupOrder;
use crate::block_transfer::buffer::Buffer;
use crate::group::delivery::application::Application;
use crate::group::delivery::message::ViewChanged;
use crate::group::delivery::messages::Messages;
use crate::group::description::terms::Description;
use crate::member::Stopped;

/// The clients' orders as the driving thread sees them, in a group with subgroups that accept
/// clients.
pub(crate) struct Orders {
    orders: BTreeMap<SubgroupId, SubgroupOrder>,
    feed: Arc<Feed>,
}

impl Orders {
    pub(crate) fn new(subgroups: &[SubgroupId], own: NodeId, feed: Arc<Feed>) -> Self {
        let order = |id: &SubgroupId| (*id, SubgroupOrder::new(*id, own));
        Self { orders: subgroups.iter().map(order).collect(), feed }
    }

    fn begin_view(&mut self, change: &ViewChanged<'_>) {
        for order in self.orders.values_mut() {
            if change.view.is_closed(order.subgroup()) {
                order.begin_anew();
            }
        }
        self.feed.begin_view(change);
    }

    fn tell(&mut self, subgroup: SubgroupId) {
        if let Some(order) = self.orders.get_mut(&subgroup) {
            self.feed.tell(order.subgroup(), order.take_news());
        }
    }
}

/// An application, with the order of its clients if the group accepts any.
pub(crate) struct Served<A> {
    application: A,
    orders: Option<Box<Orders>>,
}

impl<A> Served<A> {
    pub(crate) const fn new(application: A, orders: Option<Box<Orders>>) -> Self {
        Self { application, orders }
    }

    /// Wraps the application of a group that accepts no clients.
    pub(crate) const fn without(application: A) -> Self {
        Self { application, orders: None }
    }

    pub(crate) const fn get_mut(&mut self) -> &mut A {
        &mut self.application
    }
}

impl<A: Application> Served<A> {
    /// Supplies the application's state to one follower that waits for it.
    #[inline]
    pub(crate) fn supply_follower(&mut self) {
        let Some(orders) = &self.orders else { return };
        let Some(subgroup) = orders.feed.take_wanted_state() else { return };
        let Some(order) = orders.orders.get(&subgroup) else { return };
        let (position, state) = (order.position(), self.application.snapshot(subgroup));
        orders.feed.tell_state(subgroup, position, state);
    }
}

impl<A: Application> Application for Served<A> {
    #[inline]
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let Some(orders) = &mut self.orders else { return self.application.deliver(messages) };
        let subgroup = messages.subgroup();
        match orders.orders.get_mut(&subgroup) {
            None => self.application.deliver(messages),
            Some(order) => {
                loop {
                    let mut ordered = Messages::ordered(messages, order);
                    self.application.deliver(&mut ordered);
                    ordered.finish();
                    // The batch stops at the point where a client is forgotten.
                    let Some(client) = order.take_forgotten() else { break };
                    self.application.client_forgotten(subgroup, client);
                }
                orders.tell(subgroup);
            }
        }
    }

    fn exchange_large(
        &mut self,
        subgroup: SubgroupId,
        buffer: Buffer,
        bytes: usize,
    ) -> Option<Buffer> {
        self.application.exchange_large(subgroup, buffer, bytes)
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        self.application.view_changed(change);
        if let Some(orders) = &mut self.orders {
            orders.begin_view(change);
        }
    }

    fn client_forgotten(&mut self, subgroup: SubgroupId, client: ClientId) {
        self.application.client_forgotten(subgroup, client);
    }

    fn durable_changed(&mut self, subgroup: SubgroupId, durable: &DurableCounts) {
        let durable = match &self.orders {
            Some(orders) => orders.feed.tell_durable(subgroup, durable),
            None => *durable,
        };
        self.application.durable_changed(subgroup, &durable);
    }

    fn ended(&mut self, why: &Stopped) {
        self.application.ended(why);
    }

    fn snapshot(&mut self, subgroup: SubgroupId) -> Box<dyn Read + Send> {
        let state = self.application.snapshot(subgroup);
        let order = self.orders.as_ref().and_then(|orders| orders.orders.get(&subgroup));
        match order {
            None => state,
            Some(order) => Box::new(Cursor::new(order.snapshot()).chain(state)),
        }
    }

    fn restore(&mut self, subgroup: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        if let Some(orders) = &mut self.orders
            && let Some(order) = orders.orders.get_mut(&subgroup)
        {
            order.restore(state)?;
            orders.tell(subgroup);
        }
        self.application.restore(subgroup, state)
    }
}

/// Returns the subgroups of a group that accept clients.
pub(crate) fn subgroups_with_clients(description: &Description) -> Vec<SubgroupId> {
    let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
    subgroups.filter(|(_, subgroup)| subgroup.clients).map(|(id, _)| id).collect()
}
