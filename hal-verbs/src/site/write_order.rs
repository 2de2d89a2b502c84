//! The party that keeps the order of writes at a site, which is decided once, for all views.

use super::JoinError;
use crate::devices::{Device, Order};
use crate::settings::{Limits, WriteOrder};

/// Decides which order is guaranteed, and which party keeps it.
///
/// # Errors
/// Fails with [`JoinError::NoWriteOrder`] if the device keeps no order and the fabric may not keep
/// it either.
pub(super) fn decide(device: &Device, limits: &Limits) -> Result<(Order, WriteOrder), JoinError> {
    if limits.write_order.unwrap_or(device.order.writes) {
        let order = Order {
            writes: true,
            addresses: limits.address_order.unwrap_or(device.order.addresses),
            visible_upon_completion: limits
                .completion_visible
                .unwrap_or(device.order.visible_upon_completion),
        };
        return Ok((order, WriteOrder::ByDevice));
    }
    if !limits.allow_updates {
        return Err(JoinError::NoWriteOrder { device: device.name.clone() });
    }
    // With updates, a payload that is copied separately may arrive after its counter, and an update
    // may have been received but not applied, whatever the device guarantees.
    let order = Order { writes: true, addresses: false, visible_upon_completion: false };
    Ok((order, WriteOrder::ByUpdates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::samples::rxe;
    use crate::devices::{DataInOrder, DeviceKind};

    fn device(writes: bool) -> Device {
        let order = Order { writes, ..DeviceKind::Adapter.order(DataInOrder::Yes) };
        Device { kind: DeviceKind::Adapter, order, ..rxe() }
    }

    fn decided(writes: bool, wanted: Option<bool>) -> WriteOrder {
        let limits = Limits { write_order: wanted, ..Limits::default() };
        decide(&device(writes), &limits).expect("some way").1
    }

    #[test]
    fn operator_setting_overrides_reported_write_order() {
        assert_eq!(decided(true, None), WriteOrder::ByDevice);
        assert_eq!(decided(false, None), WriteOrder::ByUpdates);
        assert_eq!(decided(true, Some(false)), WriteOrder::ByUpdates);
        assert_eq!(decided(false, Some(true)), WriteOrder::ByDevice);
    }

    #[test]
    fn ordered_updates_promise_only_write_order() {
        let limits = Limits {
            write_order: Some(false),
            address_order: Some(true),
            completion_visible: Some(true),
            ..Limits::default()
        };
        let (order, _) = decide(&device(true), &limits).expect("updates");
        assert!(order.writes && !order.addresses && !order.visible_upon_completion);
    }

    #[test]
    fn unordered_device_without_updates_is_refused() {
        let limits = Limits { allow_updates: false, ..Limits::default() };
        assert!(matches!(decide(&device(false), &limits), Err(JoinError::NoWriteOrder { .. })));
        assert!(decide(&device(true), &limits).is_ok());
    }
}
