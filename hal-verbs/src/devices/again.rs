//! The choice of an address after a port has changed.

use std::net::IpAddr;

use super::choice::best_gid;
use super::interface::with_address;
use super::{Choice, ChoiceError, Device, Devices, GidChoice, Port, Wanted};

impl Devices {
    /// Chooses a port and an address within the caller's constraints. If the caller requires no
    /// address, the first choice is the address at which the members meet. The second choice is an
    /// address of the network interface that has the meeting address, on the port below that
    /// interface. Any other choice may fail to reach peers, so it is logged.
    pub(crate) fn choose_for_meeting(
        &self,
        wanted: &Wanted,
        meeting: Option<IpAddr>,
    ) -> Result<Choice, ChoiceError> {
        let (GidChoice::Auto, Some(address)) = (wanted.gid, meeting) else {
            return self.choose(wanted);
        };
        let there = Wanted { gid: GidChoice::Address(address), ..wanted.clone() };
        if let Ok(choice) = self.choose(&there) {
            return Ok(choice);
        }
        let interfaces = with_address(address);
        if let Some(choice) = self.choose_below(wanted, &interfaces) {
            return Ok(choice);
        }
        let choice = self.choose(wanted)?;
        if !address.is_loopback() {
            tracing::warn!(
                %address,
                interface = interfaces.first(),
                device = choice.name,
                port = choice.port,
                gid = choice.gid.index,
                gid_address = %choice.gid.address,
                "no RDMA device is on the network interface with the address at which members \
                 meet, so the first usable one is used; if it does not reach the other members, \
                 choose a device and a GID on their network"
            );
        }
        Ok(choice)
    }

    /// Chooses a port below one of these interfaces, and an address of that interface if it has
    /// any, because the port's other addresses may belong to other networks.
    fn choose_below(&self, wanted: &Wanted, interfaces: &[String]) -> Option<Choice> {
        let ports = || {
            let devices = self.devices.iter();
            devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)))
        };
        let is_wanted = |device: &Device, port: &Port| {
            wanted.device.as_ref().is_none_or(|name| *name == device.name)
                && wanted.port.is_none_or(|number| number == port.number)
        };
        interfaces.iter().find_map(|name| {
            ports().filter(|(device, port)| is_wanted(device, port)).find_map(|(device, port)| {
                let interface = port.interfaces.iter().find(|found| found.name == *name)?;
                let own = best_gid(port, |gid| interface.gids.contains(&gid.index));
                let gid = own.map_or(GidChoice::Auto, |gid| GidChoice::Index(gid.index));
                let (device, port) = (Some(device.name.clone()), Some(port.number));
                self.choose(&Wanted { device, port, gid, ..wanted.clone() }).ok()
            })
        })
    }
}

/// Chooses again on a device that has changed since `before` was chosen. Prefers the same address
/// if the same port still has it, at any index, then another address of that port, then an address
/// of another port. An index that the caller requires is kept as long as the entry exists. A packet
/// size that is now too large is lowered to the port's.
///
/// # Errors
/// Fails like [`Devices::choose`] if nothing on the device is usable.
pub(crate) fn choose_again(
    device: &Device,
    wanted: &Wanted,
    meeting: Option<IpAddr>,
    before: &Choice,
) -> Result<Choice, ChoiceError> {
    let port = device.ports.iter().find(|port| port.number == before.port);
    let same_gid = port.and_then(|port| {
        let is_same =
            |gid: &&super::Gid| (gid.address, gid.kind) == (before.gid.address, before.gid.kind);
        port.gids.iter().find(is_same).map(|gid| GidChoice::Index(gid.index))
    });
    let devices = Devices { devices: vec![device.clone()] };
    let on_device = Wanted { device: Some(device.name.clone()), ..wanted.clone() };
    let on_port = Wanted { port: Some(before.port), ..on_device.clone() };
    let insists = matches!(wanted.gid, GidChoice::Index(_)).then(|| on_port.clone());
    let same = same_gid.map(|gid| Wanted { gid, ..on_port.clone() });
    let narrow =
        insists.into_iter().chain(same).find_map(|wanted| fit(&devices, wanted, None).ok());
    narrow.map_or_else(
        || fit(&devices, on_port, meeting).or_else(|_| fit(&devices, on_device, meeting)),
        Ok,
    )
}

/// Chooses, with a packet size that the port supports.
fn fit(devices: &Devices, wanted: Wanted, meeting: Option<IpAddr>) -> Result<Choice, ChoiceError> {
    match devices.choose_for_meeting(&wanted, meeting) {
        Err(ChoiceError::BadMtu { .. }) => {
            devices.choose_for_meeting(&Wanted { mtu_bytes: None, ..wanted }, meeting)
        }
        chosen => chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::rxe;
    use super::super::{Gid, GidKind, Interface, LinkLayer, PortState};
    use super::*;

    const V2: GidKind = GidKind::RoceV2;

    fn gid(index: u8, kind: GidKind, address: &str) -> Gid {
        Gid { index, kind, address: address.parse().expect("an address") }
    }

    fn chosen(device: &Device, wanted: &Wanted) -> Choice {
        Devices { devices: vec![device.clone()] }.choose(wanted).expect("a choice")
    }

    /// Returns the choice that is made after `change`, for a caller whose only constraints are
    /// `wanted`.
    fn again(wanted: &Wanted, change: impl FnOnce(&mut Device)) -> Result<Choice, ChoiceError> {
        let mut device = rxe();
        let before = chosen(&device, wanted);
        change(&mut device);
        choose_again(&device, wanted, None, &before)
    }

    #[test]
    fn device_address_is_found_at_new_index() {
        let choice = again(&Wanted::default(), |device| {
            // Another entry that is equally good has a lower index.
            device.ports[0].gids = vec![
                gid(0, V2, "fe80::1"),
                gid(1, V2, "::ffff:10.1.1.1"),
                gid(5, GidKind::RoceV1, "::ffff:10.9.0.1"),
                gid(6, V2, "::ffff:10.9.0.1"),
            ];
        });
        assert_eq!(choice.expect("a choice").gid, gid(6, V2, "::ffff:10.9.0.1"));
    }

    #[test]
    fn lost_address_is_replaced_by_best_remaining() {
        let choice = again(&Wanted::default(), |device| {
            device.ports[0].gids[1] = gid(1, V2, "::ffff:10.9.0.7");
        });
        assert_eq!(choice.expect("a choice").gid, gid(1, V2, "::ffff:10.9.0.7"));
        let none = again(&Wanted::default(), |device| device.ports[0].gids.clear());
        assert!(matches!(none, Err(ChoiceError::NoGid { .. })));
    }

    #[test]
    fn address_used_by_the_meeting_is_preferred() {
        let mut device = rxe();
        let before = chosen(&device, &Wanted::default());
        device.ports[0].gids = vec![gid(0, V2, "::ffff:10.1.1.1"), gid(2, V2, "::ffff:10.9.0.7")];
        let meeting = "10.9.0.7".parse().ok();
        let choice = choose_again(&device, &Wanted::default(), meeting, &before);
        assert_eq!(choice.expect("a choice").gid.index, 2);
    }

    #[test]
    fn required_index_is_kept_while_its_entry_exists() {
        let wanted = Wanted { gid: GidChoice::Index(1), ..Wanted::default() };
        let replaced = again(&wanted, |device| {
            device.ports[0].gids =
                vec![gid(1, V2, "::ffff:10.9.0.7"), gid(2, V2, "::ffff:10.9.0.1")];
        });
        assert_eq!(replaced.expect("a choice").gid.index, 1);
        let moved = again(&wanted, |device| device.ports[0].gids[1].index = 4);
        assert_eq!(moved.expect("a choice").gid.index, 4);
    }

    #[test]
    fn required_address_is_never_replaced() {
        let address = "10.9.0.1".parse().expect("an address");
        let wanted = Wanted { gid: GidChoice::Address(address), ..Wanted::default() };
        let gone = again(&wanted, |device| {
            device.ports[0].gids[1] = gid(1, V2, "::ffff:10.9.0.7");
        });
        assert!(matches!(gone, Err(ChoiceError::NoGidFor { .. })));
    }

    #[test]
    fn renewed_choice_uses_current_lid_and_mtu() {
        let infiniband = |lid| {
            move |device: &mut Device| {
                let port = &mut device.ports[0];
                (port.link_layer, port.lid) = (LinkLayer::InfiniBand, lid);
            }
        };
        assert_eq!(again(&Wanted::default(), infiniband(9)).expect("a choice").lid, 9);
        let unmanaged = again(&Wanted::default(), infiniband(0));
        assert!(matches!(unmanaged, Err(ChoiceError::NoLid { .. })));
        let wanted = Wanted { mtu_bytes: Some(1024), ..Wanted::default() };
        let lowered = again(&wanted, |device| device.ports[0].mtu_bytes = 512);
        assert_eq!(lowered.expect("a choice").mtu_bytes, 512, "a large one no longer fits");
    }

    #[test]
    fn port_below_meeting_interface_is_chosen() {
        let named = |device: &str, interface: &str, gids: &[u8]| {
            let interface = Interface { name: interface.to_owned(), gids: gids.to_vec() };
            let mut found = Device { name: device.to_owned(), ..rxe() };
            found.ports[0].interfaces = vec![interface];
            found
        };
        // The second port's interface has only the worse of the port's addresses; the third port's
        // has none.
        let devices = vec![
            named("mlx5_0", "ens1", &[0, 1]),
            named("mlx5_1", "ens2", &[0]),
            named("mlx5_2", "ib0", &[]),
        ];
        let devices = Devices { devices };
        let below = |wanted: &Wanted, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let choice = devices.choose_below(wanted, &names)?;
            Some((devices.devices[choice.device].name.clone(), choice.gid.index))
        };
        let any = Wanted::default();
        assert_eq!(below(&any, &["br0", "ens2"]), Some(("mlx5_1".to_owned(), 0)));
        assert_eq!(below(&any, &["ib0"]), Some(("mlx5_2".to_owned(), 1)));
        assert_eq!(below(&any, &["eth0"]), None);
        let insists = Wanted { device: Some("mlx5_0".to_owned()), ..Wanted::default() };
        assert_eq!(below(&insists, &["ens2"]), None, "the caller goes before the interface");
    }

    #[test]
    fn usable_port_replaces_unusable_port() {
        let second = |device: &mut Device| {
            let mut port = device.ports[0].clone();
            port.number = 2;
            device.ports.push(port);
        };
        let kept = again(&Wanted::default(), second);
        assert_eq!(kept.expect("a choice").port, 1);
        let down = |device: &mut Device| {
            second(device);
            device.ports[0].state = PortState::Down;
        };
        assert_eq!(again(&Wanted::default(), down).expect("a choice").port, 2);
        let wanted = Wanted { port: Some(1), ..Wanted::default() };
        assert!(matches!(again(&wanted, down), Err(ChoiceError::NoActivePort { .. })));
    }
}
