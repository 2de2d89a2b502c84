//! The device of a test: a real one if TRAMONTANE_VERBS_DEVICE names it, as in the lab; otherwise a
//! fake one that resembles software RoCE.

use std::cell::RefCell;

use tramontane_verbs::devices::{Devices, Wanted};
use tramontane_verbs::fake::{Clock, DeviceName, Network, Profile};

/// Environment variable that names a real device.
const VARIABLE: &str = "TRAMONTANE_VERBS_DEVICE";

thread_local! {
    /// The fake device that a test uses instead of the usual one.
    static INSTEAD: RefCell<Option<Wanted>> = const { RefCell::new(None) };
    /// Each test runs in its own thread and has its own network.
    static FAKE: (Network, DeviceName) = {
        let network = Network::new(1, Clock::Real);
        let device = network.add_device(Profile::soft_roce());
        (network, device)
    };
}

/// Returns the name of the real device, if one is to be used.
pub fn real() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

/// Returns whether two processes see the same device. A fake device exists in one process only.
pub fn is_shared_by_processes() -> bool {
    let is_shared = real().is_some();
    if !is_shared {
        println!("not tested: it needs a device that two processes share");
    }
    is_shared
}

/// Makes this test use a fake device of another kind from then on.
pub fn take_instead(profile: Profile, seed: u64) -> Network {
    let network = Network::new(seed, Clock::Real);
    let device = network.add_device(profile);
    INSTEAD.set(Some(device.wanted()));
    network
}

/// Returns the constraints of members.
pub fn wanted() -> Wanted {
    if let Some(wanted) = INSTEAD.with_borrow(Clone::clone) {
        return wanted;
    }
    match real() {
        Some(name) => Wanted { device: Some(name), ..Wanted::default() },
        None => FAKE.with(|(_, device)| device.wanted()),
    }
}

/// Returns the devices.
pub fn devices() -> Devices {
    match real() {
        Some(_) => Devices::discover().expect("a list"),
        None => FAKE.with(|(network, device)| network.describe(device).expect("it answers")),
    }
}

/// Describes the number of objects of each kind that the device has.
pub fn objects() -> String {
    match real() {
        Some(_) => {
            let output = std::process::Command::new("rdma").args(["resource", "show"]).output();
            let output = output.expect("the rdma tool");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        None => FAKE.with(|(network, _)| format!("{} objects", network.objects())),
    }
}
