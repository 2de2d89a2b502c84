//! What devices promise about order, and how one is asked (HAL-1).

use serde::Serialize;

use super::{DataInOrder, DeviceKind};

/// Promises about order (HAL-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Between writes to one peer.
    pub writes: bool,
    /// Between the bytes of one write.
    pub addresses: bool,
    /// What is completed can be seen at the other end.
    pub visible_upon_completion: bool,
}

impl DeviceKind {
    /// What such a device keeps about order, where nobody overrides it. `data_in_order` is its
    /// answer to `ibv_query_qp_data_in_order` for writes.
    ///
    /// | kind | answer | between writes | within a write | visible upon completion |
    /// |---|---|---|---|---|
    /// | a driver in software | not asked | yes | no | yes |
    /// | an adapter | yes | yes | no | no |
    /// | an adapter | no, or not known | no | no | no |
    ///
    /// - *In software* each packet is copied by a processor, in the order of the connection's
    ///   packets, before it is acknowledged. The copy itself keeps no order of addresses.
    /// - *Yes* says, by the manual page, that the data of each request into this queue pair is
    ///   written in order, and nothing of separate requests. A reliable connection executes
    ///   requests in order; what makes one overtake another are packets that are placed as they
    ///   come, after adaptive routing, and bus writes with relaxed ordering. A device that keeps
    ///   the order within every request does neither. That is a conclusion, so an operator may
    ///   withdraw it ([`Limits::write_order`]).
    /// - *Within a write* a yes would be enough for what this member receives, and says nothing of
    ///   its peers' devices, to which it writes: the operator may know ([`Limits::address_order`]).
    /// - *No* cannot be told from *not known*: a provider that does not implement the question says
    ///   no, and so do all where the processor is not x86. Both promise nothing; the fabric keeps
    ///   the order itself then ([`WriteOrder::ByUpdates`]).
    /// - *Visible upon completion*: an acknowledgement says that the other adapter has the data,
    ///   not that it has passed the bus there.
    ///
    /// [`Limits::write_order`]: crate::Limits::write_order
    /// [`Limits::address_order`]: crate::Limits::address_order
    /// [`WriteOrder::ByUpdates`]: crate::settings::WriteOrder::ByUpdates
    #[must_use]
    pub const fn order(self, data_in_order: DataInOrder) -> Order {
        let is_software = !matches!(self, Self::Adapter);
        let says_yes = matches!(data_in_order, DataInOrder::Yes);
        Order {
            writes: is_software || says_yes,
            addresses: false,
            visible_upon_completion: is_software,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_promises_order_between_writes_only_if_it_says_so() {
        let adapter = DeviceKind::from_vendor(0x02c9);
        let answers =
            [(DataInOrder::Yes, true), (DataInOrder::No, false), (DataInOrder::NotKnown, false)];
        for (answer, writes) in answers {
            let order = adapter.order(answer);
            assert_eq!(order.writes, writes, "{answer:?}");
            assert!(!order.addresses && !order.visible_upon_completion);
        }
    }

    #[test]
    fn software_keeps_order_whatever_it_answers() {
        for answer in [DataInOrder::Yes, DataInOrder::No, DataInOrder::NotKnown] {
            let order = DeviceKind::SoftRoce.order(answer);
            assert!(order.writes && order.visible_upon_completion && !order.addresses);
        }
    }
}
