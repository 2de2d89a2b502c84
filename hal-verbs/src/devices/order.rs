//! Guarantees of devices about order, and how a device is queried for them (HAL-1).

use serde::Serialize;

/// The kind of a device: a known software driver, or hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// Software RoCE (`rdma_rxe`).
    SoftRoce,
    /// Software iWARP (`siw`).
    SoftIwarp,
    /// Hardware, as far as is known.
    Adapter,
}

impl DeviceKind {
    /// Determines the kind from a vendor number. The two software drivers have numbers of their
    /// own.
    #[must_use]
    pub const fn from_vendor(vendor_id: u32) -> Self {
        match vendor_id {
            0x00ff_ffff => Self::SoftRoce,
            0x0062_6d74 => Self::SoftIwarp,
            _ => Self::Adapter,
        }
    }
}

/// A device's answer to the question whether the bytes of writes are placed in order
/// (`ibv_query_qp_data_in_order`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataInOrder {
    /// They are.
    Yes,
    /// No promise. Drivers that do not implement the question answer this too.
    No,
    /// The library does not implement the question.
    #[default]
    NotKnown,
}

/// The order that a device guarantees (HAL-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Writes to one peer arrive in order.
    pub writes: bool,
    /// The bytes of one write arrive in the order of their addresses.
    pub addresses: bool,
    /// A completed write is visible at the other end.
    pub visible_upon_completion: bool,
}

impl DeviceKind {
    /// Returns the order that a device of this kind keeps, unless the operator overrides it.
    /// `data_in_order` is the device's answer to `ibv_query_qp_data_in_order` for writes.
    ///
    /// | kind | answer | between writes | within a write | visible upon completion |
    /// |---|---|---|---|---|
    /// | software driver | not asked | yes | no | yes |
    /// | NIC | yes | yes | no | no |
    /// | NIC | no, or not known | no | no | no |
    ///
    /// - *Software devices*: a processor copies each packet, in the order of the connection's
    ///   packets, before the packet is acknowledged. The copy itself keeps no order of addresses.
    /// - *Yes* means, according to the manual page, that the data of each request into this queue
    ///   pair is written in order; it says nothing about separate requests. A reliable connection
    ///   executes requests in order. One request can overtake another only if packets are placed as
    ///   they arrive, after adaptive routing, or if bus writes use relaxed ordering. A device that
    ///   keeps the order within every request does neither of these. This is an inference, so an
    ///   operator may override it ([`Limits::write_order`]).
    /// - *Within a write*, a yes covers the writes that this member receives, but says nothing
    ///   about the devices of the peers to which it writes. The operator may know more
    ///   ([`Limits::address_order`]).
    /// - *No* cannot be distinguished from *not known*: a provider that does not implement the
    ///   question says no, and all providers say no on processors other than x86. Neither
    ///   guarantees anything, so the fabric keeps the order itself ([`WriteOrder::ByUpdates`]).
    /// - *Visible upon completion*: an acknowledgement means that the remote NIC has the data, not
    ///   that the data has crossed the bus there.
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
    fn nic_promises_write_order_only_if_reported() {
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
    fn software_device_always_promises_write_order() {
        for answer in [DataInOrder::Yes, DataInOrder::No, DataInOrder::NotKnown] {
            let order = DeviceKind::SoftRoce.order(answer);
            assert!(order.writes && order.visible_upon_completion && !order.addresses);
        }
    }
}
