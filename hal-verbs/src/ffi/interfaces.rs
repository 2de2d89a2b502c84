//! The network interfaces that have an address, according to the C library.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::{NonNull, null_mut};

/// Returns the names of the interfaces that have an address; the list is empty if the system does
/// not report them.
pub(crate) fn interfaces_with(address: IpAddr) -> Vec<String> {
    let mut list = null_mut();
    // SAFETY: `list` is writable; it receives a list that is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut names = Vec::new();
    let mut next = NonNull::new(list);
    while let Some(entry) = next {
        // SAFETY: this is an entry of the list, which has been neither changed nor freed.
        let entry = unsafe { entry.as_ref() };
        // SAFETY: the address of an entry is null or a socket address of its stated family.
        if unsafe { address_of(entry.ifa_addr) } == Some(address) {
            // SAFETY: an interface's name is a string that is valid for as long as the list.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            names.push(name.to_string_lossy().into_owned());
        }
        next = NonNull::new(entry.ifa_next);
    }
    // SAFETY: the list is freed once, here.
    unsafe { libc::freeifaddrs(list) };
    names
}

/// Returns the IP address of a socket address, if it is one.
///
/// # Safety
/// `address` must be null or a socket address of its stated family.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    let address = NonNull::new(address.cast_mut())?;
    // SAFETY: every socket address begins with its family.
    match i32::from(unsafe { address.as_ref() }.sa_family) {
        libc::AF_INET => {
            // SAFETY: the address has this family.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the address has this family.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_interface_is_found_by_its_address() {
        assert!(interfaces_with(Ipv4Addr::LOCALHOST.into()).contains(&"lo".to_owned()));
        assert!(interfaces_with("192.0.2.1".parse().expect("an address")).is_empty());
    }
}
