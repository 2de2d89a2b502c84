//! Network interfaces: those that have an address, and those that belong to a port.

use std::fs::{read_dir, read_to_string};
use std::io::ErrorKind;
use std::net::IpAddr;

use serde::Serialize;

use super::Gid;
use crate::ffi;

/// A network interface on a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// The interface's name in `/sys/class/net`.
    pub name: String,
    /// The indices of the interface's entries in the port's address table.
    pub gids: Vec<u8>,
}

impl Interface {
    /// Returns whether the interface has no link, according to the kernel.
    pub(crate) fn lacks_link(&self) -> bool {
        match read_to_string(format!("/sys/class/net/{}/carrier", self.name)) {
            Ok(carrier) => carrier.trim() == "0",
            // The carrier of an interface that is down cannot be read.
            Err(error) => error.kind() == ErrorKind::InvalidInput,
        }
    }
}

/// A bound above the size of any practical stack of bonds, bridges and VLANs.
const INTERFACES_MAX: usize = 32;

/// Returns the interfaces that have a given address and those below them, nearest first. A bridge,
/// bond or VLAN may have addresses that the port below it lacks.
pub(super) fn with_address(address: IpAddr) -> Vec<String> {
    let mut found = ffi::interfaces_with(address);
    let mut next = 0;
    while let Some(name) = found.get(next).cloned()
        && found.len() < INTERFACES_MAX
    {
        next += 1;
        for entry in names_in(&format!("/sys/class/net/{name}")) {
            match entry.strip_prefix("lower_") {
                Some(lower) if !found.iter().any(|known| known == lower) => {
                    found.push(lower.to_owned());
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the interfaces on a port: those of the port's addresses and, as on InfiniBand, those of
/// the hardware behind the device.
pub(crate) fn on_port(device: &str, port: u8, gids: &[Gid]) -> Vec<Interface> {
    let folder = format!("/sys/class/infiniband/{device}");
    let mut found: Vec<Interface> = Vec::new();
    for gid in gids {
        let file = format!("{folder}/ports/{port}/gid_attrs/ndevs/{}", gid.index);
        let Ok(text) = read_to_string(file) else { continue };
        let name = text.trim();
        match found.iter_mut().find(|interface| interface.name == name) {
            Some(interface) => interface.gids.push(gid.index),
            None => found.push(Interface { name: name.to_owned(), gids: vec![gid.index] }),
        }
    }
    for name in names_in(&format!("{folder}/device/net")) {
        let port_there = read_to_string(format!("{folder}/device/net/{name}/dev_port"));
        let is_of_port = port_there.is_ok_and(|text| text.trim().parse() == Ok(port - 1));
        if is_of_port && !found.iter().any(|interface| interface.name == name) {
            found.push(Interface { name, gids: Vec::new() });
        }
    }
    found
}

fn names_in(folder: &str) -> Vec<String> {
    let Ok(entries) = read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_has_link_unless_kernel_denies_it() {
        for name in ["lo", "none"] {
            let interface = Interface { name: name.to_owned(), gids: Vec::new() };
            assert!(!interface.lacks_link(), "{name}");
        }
    }
}
