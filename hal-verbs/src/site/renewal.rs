//! A site before its next view: its port looked at again, or its device opened anew.
//!
//! # Invariants
//! - What exists of earlier views stays as it was made; a device that failed is closed when the
//!   last of them is gone.
//! - A site is changed wholly or not at all.

use super::{JoinError, Site};
use crate::adapter::{self, ProtectionDomain};
use crate::devices::discover::describe_ports;
use crate::devices::{Choice, Device, Devices, PortState, choose_again, mtu_bytes};

impl Site {
    /// Makes the site ready for a next view. A device that failed is opened again, under whatever
    /// name it is back, with all block memory. A port that changed is looked at again, so that the
    /// next view connects by the address, LID and packet size of now. As long as nothing on the
    /// device can be used, the last choice is kept, and the next call looks again.
    ///
    /// One call to the kernel if nothing has changed. Take the device's events first
    /// ([`Site::check_device`]).
    ///
    /// # Errors
    /// [`JoinError::DeviceGone`] if the device failed and is not back; else what it refused.
    pub fn renew(&mut self) -> Result<(), JoinError> {
        if self.events.has_failed() {
            return self.open_again();
        }
        if self.events.is_port_stale() || self.has_port_changed() {
            self.look_again();
        }
        Ok(())
    }

    /// Whether the port's state, LID or packet size is another. No event tells of a packet size
    /// that changes with the network interface.
    fn has_port_changed(&self) -> bool {
        let known = self.device.ports.iter().find(|port| port.number == self.choice.port);
        let now = self.context.port(self.choice.port);
        let (Some(known), Ok(now)) = (known, now) else { return true };
        (PortState::from_raw(now.state), now.lid, mtu_bytes(now.mtu_active))
            != (known.state, known.lid, known.mtu_bytes)
    }

    /// Looks at all ports, and chooses by what is there now.
    fn look_again(&mut self) {
        let count = u8::try_from(self.device.ports.len()).unwrap_or(u8::MAX);
        match describe_ports(&self.context, &self.device.name, count) {
            Ok(ports) => self.device.ports = ports,
            Err(error) => {
                let device = self.device.name.as_str();
                tracing::warn!(device, %error, "the ports cannot be looked at");
                return self.events.looked(false);
            }
        }
        let (choice, is_settled) = self.choose_on(&self.device);
        self.choice = choice;
        self.events.looked(is_settled);
    }

    /// What to use of a device that changed. If nothing can be used, the last choice and false.
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
                tracing::warn!(%error, %address, "the last address is kept, and may lead nowhere");
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
        let domain = ProtectionDomain::new(&context).map_err(failed("make a protection domain"))?;
        self.block_store.move_to(domain).map_err(failed("register block memory again"))?;
        let (choice, is_settled) = self.choose_on(&device);
        tracing::info!(device = device.name, "the device is back, and opened again");
        (self.device, self.choice, self.context) = (device, choice, context);
        self.events = super::events::DeviceEvents::default();
        self.events.looked(is_settled);
        Ok(())
    }

    /// The device that failed, as it is now: by its name, or by its node's number if it is back
    /// under another.
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
        let place = place.ok_or_else(|| gone("no device has its name or its number".to_owned()))?;
        Ok(devices.swap_remove(place))
    }
}

/// One line: what was and what is.
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
        "the next view connects by what the port has now"
    );
}
