//! Names of fake devices: each is unique in the process, and opening a device looks its name up
//! here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::clock::Core;

/// A device, registered by its name.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    core: Weak<Core>,
    pub(super) device: usize,
}

impl Registered {
    /// Returns the device's hardware, for as long as it has an owner.
    pub(super) fn core(&self) -> Option<Arc<Core>> {
        self.core.upgrade()
    }
}

#[derive(Debug)]
struct Registry {
    devices: BTreeMap<String, Registered>,
    made: u64,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { devices: BTreeMap::new(), made: 0 });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a device under a name that has never been used in this process.
pub(super) fn register(core: &Arc<Core>, device: usize) -> String {
    let mut registry = registry();
    let name = format!("fake{}", registry.made);
    registry.made += 1;
    registry.devices.insert(name.clone(), Registered { core: Arc::downgrade(core), device });
    name
}

/// Removes these names.
pub(super) fn remove(names: &[String]) {
    let mut registry = registry();
    for name in names {
        registry.devices.remove(name);
    }
}

/// Returns the device with this name.
pub(super) fn find(name: &str) -> Option<Registered> {
    registry().devices.get(name).cloned()
}

/// Returns whether this is the name of a fake device.
pub(crate) fn is_registered(name: &str) -> bool {
    find(name).is_some()
}
