//! Preparation of a site for its next view: the port is queried again, or the device is reopened.
//!
//! # Invariants
//! - Objects of earlier views stay as they were created. A failed device is closed when the last of
//!   them is dropped.
//! - A site changes completely or not at all.

use super::{JoinError, Site};
use crate::adapter::{self, ProtectionDomain};
use crate::devices::discover::describe_ports;
use crate::devices::{Choice, Device, Devices, PortState, choose_again, mtu_bytes};

impl Site {
    /// Prepares the site for the next view. A failed device is reopened, even if it has returned
    /// under another name, together with all block memory. A changed port is queried again, so that
    /// the next view connects with the current address, LID and packet size. While nothing on the
    /// device is usable, the last choice is kept and the next call tries again.
    ///
    /// Makes one call to the kernel if nothing has changed. Read the device's events first
    /// ([`Site::check_device`]).
    ///
    /// # Errors
    /// Fails with [`JoinError::DeviceGone`] if the device has failed and has not returned, or else
    /// with the device's error.
    pub fn renew(&mut self) -> Result<(), JoinError> {
        if self.events.has_failed() {
            return self.open_again();
        }
        if self.events.is_port_stale() || self.has_port_changed() {
            self.look_again();
        }
        Ok(())
    }

    /// Returns whether the port's state, LID or packet size has changed. No event reports a packet
    /// size that changes with the network interface.
    fn has_port_changed(&self) -> bool {
        let known = self.device.ports.iter().find(|port| port.number == self.choice.port);
        let now = self.context.port(self.choice.port);
        let (Some(known), Ok(now)) = (known, now) else { return true };
        (PortState::from_raw(now.state), now.lid, mtu_bytes(now.mtu_active))
            != (known.state, known.lid, known.mtu_bytes)
    }

    /// Queries all ports, and chooses among those that now exist.
    fn look_again(&mut self) {
        let count = u8::try_from(self.device.ports.len()).unwrap_or(u8::MAX);
        match describe_ports(&self.context, &self.device.name, count) {
            Ok(ports) => self.device.ports = ports,
            Err(error) => {
                let device = self.device.name.as_str();
                tracing::warn!(device, %error, "the ports cannot be queried");
                return self.events.looked(false);
            }
        }
        let (choice, is_settled) = self.choose_on(&self.device);
        self.choice = choice;
        self.events.looked(is_settled);
    }

    /// Chooses on a changed device. Returns the last choice and `false` if nothing is usable.
    fn choose_on(&self, device: &Device) -> (Choice, bool) {
        let before = &self.choice;
        match choose_again(device, &self.wanted, self.meeting, before) {
            Ok(choice) => {
                if choice != *before {
                    tell(before, &choice);
                }
                (choice, true)
            }
            Err(error) => {
                let address = before.gid.address;
                tracing::warn!(%error, %address, "the last address is kept, but may lead nowhere");
                (Choice { name: device.name.clone(), ..before.clone() }, false)
            }
        }
    }

    fn open_again(&mut self) -> Result<(), JoinError> {
        let device = self.find_again()?;
        let failed = |action| {
            let name = &device.name;
            move |source| JoinError::from_device(name, action, source)
        };
        let context = adapter::open(&device.name).map_err(failed("open it again"))?;
        let domain =
            ProtectionDomain::new(&context).map_err(failed("create a protection domain"))?;
        self.block_store.move_to(domain).map_err(failed("register block memory again"))?;
        let (choice, is_settled) = self.choose_on(&device);
        tracing::info!(
            device = device.name,
            "the device is available again, and has been reopened"
        );
        (self.device, self.choice, self.context) = (device, choice, context);
        self.events = super::events::DeviceEvents::default();
        self.events.looked(is_settled);
        Ok(())
    }

    /// Finds the failed device again: by its name, or by its node GUID if it has returned under
    /// another name.
    fn find_again(&self) -> Result<Device, JoinError> {
        let Device { name, node_guid, .. } = &self.device;
        let gone = |why: String| JoinError::DeviceGone { device: name.clone(), why };
        let found = Devices::within_reach(Some(name)).or_else(|_| Devices::discover());
        let found = found.map_err(|error| gone(error.to_string()))?;
        let mut devices = found.devices;
        let place = devices
            .iter()
            .position(|device| device.name == *name)
            .or_else(|| devices.iter().position(|device| device.node_guid == *node_guid));
        let place = place.ok_or_else(|| gone("no device has its name or its GUID".to_owned()))?;
        Ok(devices.swap_remove(place))
    }
}

/// Logs one line with the old and the new choice.
fn tell(before: &Choice, now: &Choice) {
    tracing::info!(
        device = now.name,
        port = now.port,
        port_before = before.port,
        gid = now.gid.index,
        gid_before = before.gid.index,
        address = %now.gid.address,
        address_before = %before.gid.address,
        lid = now.lid,
        lid_before = before.lid,
        mtu_bytes = now.mtu_bytes,
        mtu_bytes_before = before.mtu_bytes,
        "the next view uses the port's current address and packet size"
    );
}
