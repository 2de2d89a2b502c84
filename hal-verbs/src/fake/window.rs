//! Memory windows of type 2: bound and taken back by requests, each good on one queue pair.

use std::io;

use rustix::io::Errno;

use super::ProtectionDomain;
use super::hardware::Hardware;
use super::network::CommandKind;
use super::profile::Windows;
use super::request::LocalBytes;
use crate::adapter::Access;

/// `IBV_WC_LOC_QP_OP_ERR` and `IBV_WC_MW_BIND_ERR`.
const LOCAL_OPERATION: u32 = 2;
const WINDOW_BIND: u32 = 6;

/// A window, as its owner has it.
#[derive(Debug)]
pub(crate) struct MemoryWindow {
    domain: ProtectionDomain,
    pub(super) id: u64,
    first_key: u32,
}

impl MemoryWindow {
    /// A new one, which is not bound.
    pub(crate) fn new(domain: &ProtectionDomain) -> io::Result<Self> {
        let opened = &domain.0.context.0;
        let made = opened.core.command(opened.id, CommandKind::AllocateWindow, |hardware| {
            hardware.create_window(opened.id, domain.0.id)
        });
        let (id, first_key) = made?;
        Ok(Self { domain: domain.clone(), id, first_key })
    }

    /// The key that it was made with, which leads nowhere.
    pub(crate) const fn first_key(&self) -> u32 {
        self.first_key
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        let opened = &self.domain.0.context.0;
        opened.core.command(opened.id, CommandKind::FreeWindow, |hardware| {
            hardware.destroy_window(self.id);
        });
    }
}

/// A window, as its device has it.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) context: u64,
    device: usize,
    domain: u64,
    key: u32,
    bound: Option<Bound>,
}

/// Where a window leads.
#[derive(Clone, Copy, Debug)]
struct Bound {
    pair: u64,
    region: u64,
    address: u64,
    length: u64,
    access: Access,
}

/// A request to bind a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct BindWindow {
    pub(super) window: u64,
    pub(super) region: u64,
    pub(super) range: LocalBytes,
    pub(super) access: Access,
    pub(super) key: u32,
}

impl Hardware {
    fn create_window(&mut self, context: u64, domain: u64) -> io::Result<(u64, u32)> {
        if self.check(context)?.profile.windows == Windows::None {
            return Err(Errno::OPNOTSUPP.into());
        }
        let device = self.contexts.get(&context).ok_or(Errno::BADF)?.device;
        let key = self.new_key(device)?;
        let id = self.new_id();
        self.keys.insert((device, key), id);
        self.windows.insert(id, Window { context, device, domain, key, bound: None });
        Ok((id, key))
    }

    /// Ends a window: its key leads nowhere.
    pub(super) fn destroy_window(&mut self, id: u64) {
        // As at the end of a registration: what was acknowledged lands now, and nothing else does.
        self.place_all(|piece| piece.window == Some(id));
        let Some(window) = self.windows.remove(&id) else { return };
        self.keys.remove(&(window.device, window.key));
        if let Some(device) = self.devices.get_mut(window.device) {
            device.free_keys.push(window.key);
        }
    }

    /// Takes back the keys of windows that work on a queue pair that ends. A region that ends takes
    /// those with it that lead into it.
    pub(super) fn unbind_windows_of(&mut self, pair: u64) {
        for window in self.windows.values_mut() {
            window.bound = window.bound.filter(|bound| bound.pair != pair);
        }
    }

    /// Executes a request to bind.
    pub(super) fn bind(&mut self, pair: u64, bind: &BindWindow) -> Result<(), u32> {
        let domain = self.pairs.get(&pair).ok_or(WINDOW_BIND)?.domain;
        let region = self.regions.get(&bind.region).ok_or(WINDOW_BIND)?;
        let LocalBytes { address, length, .. } = bind.range;
        let is_inside = length > 0 && region.offset(address, length).is_some();
        let writes = bind.access.contains(Access::REMOTE_WRITE);
        let may_bind = region.access.contains(Access::BIND_WINDOWS)
            && (!writes || region.access.contains(Access::LOCAL_WRITE));
        let is_of_domain = region.domain == domain;
        let window = self.windows.get(&bind.window).ok_or(WINDOW_BIND)?;
        let is_free = window.bound.is_none() && window.domain == domain;
        let is_other_key = window.key != bind.key && window.key >> 8 == bind.key >> 8;
        if !(is_inside && may_bind && is_of_domain && is_free && is_other_key) {
            return Err(WINDOW_BIND);
        }
        let (device, old) = (window.device, window.key);
        self.keys.remove(&(device, old));
        self.keys.insert((device, bind.key), bind.window);
        let bound = Bound {
            pair,
            region: bind.region,
            address,
            length: length.into(),
            access: bind.access,
        };
        if let Some(window) = self.windows.get_mut(&bind.window) {
            (window.key, window.bound) = (bind.key, Some(bound));
        }
        Ok(())
    }

    /// Executes a request to take a key back.
    pub(super) fn invalidate(&mut self, pair: u64, key: u32) -> Result<(), u32> {
        let pair = self.pairs.get(&pair).ok_or(LOCAL_OPERATION)?;
        let found = self.keys.get(&(pair.device, key)).copied().ok_or(LOCAL_OPERATION)?;
        let domain = pair.domain;
        let window = self.windows.get_mut(&found).ok_or(LOCAL_OPERATION)?;
        if window.domain != domain || window.bound.is_none() {
            return Err(LOCAL_OPERATION);
        }
        let device = self.devices.get(window.device);
        if device.is_some_and(|device| device.profile.windows == Windows::NotTakenBack) {
            return Ok(());
        }
        window.bound = None;
        // What was acknowledged under the key lands; nothing else does.
        self.place_all(|piece| piece.window == Some(found));
        Ok(())
    }

    /// The region and the place in it that a window leads to, for a peer's request on a queue pair.
    pub(super) fn through_window(
        &self,
        window: u64,
        pair: u64,
        (address, length): (u64, u32),
        access: Access,
    ) -> Option<(u64, usize)> {
        let bound = self.windows.get(&window)?.bound.as_ref()?;
        let start = address.checked_sub(bound.address)?;
        let is_inside = start.checked_add(length.into())? <= bound.length;
        let is_allowed = bound.pair == pair && bound.access.contains(access);
        let offset = self.regions.get(&bound.region)?.offset(address, length)?;
        (is_inside && is_allowed).then_some((bound.region, offset))
    }
}
