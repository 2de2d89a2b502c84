//! Names of fake devices: each is unique in the process, and found by whoever opens a device by its
//! name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::clock::Core;

/// A device by its name.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    core: Weak<Core>,
    pub(super) device: usize,
}

impl Registered {
    /// The hardware that it is a part of, as long as somebody has it.
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

/// Gives a device a name that none has had in this process.
pub(super) fn register(core: &Arc<Core>, device: usize) -> String {
    let mut registry = registry();
    let name = format!("fake{}", registry.made);
    registry.made += 1;
    registry.devices.insert(name.clone(), Registered { core: Arc::downgrade(core), device });
    name
}

/// Forgets names.
pub(super) fn remove(names: &[String]) {
    let mut registry = registry();
    for name in names {
        registry.devices.remove(name);
    }
}

/// The device of a name.
pub(super) fn find(name: &str) -> Option<Registered> {
    registry().devices.get(name).cloned()
}

/// Whether a name is that of a fake device.
pub(crate) fn is_registered(name: &str) -> bool {
    find(name).is_some()
}
