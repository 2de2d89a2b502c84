//! Protection domains, and registered memory.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use rustix::io::Errno;

use super::Context;
use super::counts::CommandKind;
use super::hardware::{Hardware, Region};
use super::profile::Keys;
use crate::adapter::{Access, Pages};

/// A protection domain, which separates queue pairs from memory that does not belong to them. A
/// clone refers to the same domain.
#[derive(Clone, Debug)]
pub(crate) struct ProtectionDomain(pub(super) Arc<Domain>);

/// The domain itself, which ends when the last clone is dropped.
#[derive(Debug)]
pub(super) struct Domain {
    pub(super) context: Context,
    pub(super) id: u64,
}

impl ProtectionDomain {
    /// Allocates a protection domain.
    pub(crate) fn new(context: &Context) -> io::Result<Self> {
        let opened = &context.0;
        let id = opened.core.command(opened.id, CommandKind::AllocateDomain, |hardware| {
            hardware.check(opened.id)?;
            io::Result::Ok(hardware.new_id())
        })?;
        Ok(Self(Arc::new(Domain { context: context.clone(), id })))
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let opened = &self.context.0;
        opened.core.command(opened.id, CommandKind::FreeDomain, |_| {});
    }
}

/// A range of some pages that is registered with the device.
#[derive(Debug)]
pub(crate) struct Registration {
    domain: ProtectionDomain,
    pub(super) id: u64,
    key: u32,
}

impl Registration {
    /// Registers a range of some pages, which must be within them.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        pages: &Arc<Pages>,
        range: Range<usize>,
        access: Access,
    ) -> io::Result<Self> {
        let opened = &domain.0.context.0;
        let (id, key) = opened.core.command(opened.id, CommandKind::Register, |hardware| {
            hardware.register((opened.id, domain.0.id), pages, range, access)
        })?;
        Ok(Self { domain: domain.clone(), id, key })
    }

    /// Returns the key that peers use.
    pub(crate) const fn remote_key(&self) -> u32 {
        self.key
    }

    /// Returns the key that the local device uses.
    pub(crate) const fn local_key(&self) -> u32 {
        self.key
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let opened = &self.domain.0.context.0;
        opened.core.command(opened.id, CommandKind::Deregister, |hardware| {
            hardware.destroy_region(self.id);
        });
    }
}

impl Hardware {
    fn register(
        &mut self,
        (context, domain): (u64, u64),
        pages: &Arc<Pages>,
        range: Range<usize>,
        access: Access,
    ) -> io::Result<(u64, u32)> {
        let limits = self.check(context)?.profile.limits;
        let device = self.contexts.get(&context).ok_or(Errno::BADF)?.device;
        let length = u64::try_from(range.len()).map_err(|_| Errno::INVAL)?;
        let is_remote = access.contains(Access::REMOTE_WRITE);
        let is_within = range.start <= range.end && range.end <= pages.bytes();
        let is_good = is_within && length <= limits.region_bytes_max;
        if !is_good || (is_remote && !access.contains(Access::LOCAL_WRITE)) {
            return Err(Errno::INVAL.into());
        }
        let of_device = self.regions.values().filter(|region| region.device == device).count();
        if of_device >= usize::try_from(limits.memory_regions_max).unwrap_or(usize::MAX) {
            return Err(Errno::NOMEM.into());
        }
        self.check_locked(context, length)?;
        let key = self.new_key(device)?;
        let id = self.new_id();
        let address = pages.base().as_ptr().expose_provenance().checked_add(range.start);
        let address =
            address.and_then(|address| u64::try_from(address).ok()).ok_or(Errno::INVAL)?;
        self.keys.insert((device, key), id);
        let region = Region {
            context,
            device,
            domain,
            key,
            address,
            start: range.start,
            bytes: length,
            access,
            pages: Arc::clone(pages),
        };
        self.regions.insert(id, region);
        Ok((id, key))
    }

    /// Returns an unused key.
    pub(super) fn new_key(&mut self, device: usize) -> io::Result<u32> {
        let Self { devices, keys, random, .. } = self;
        let found = devices.get_mut(device).ok_or(Errno::NODEV)?;
        loop {
            let key = match found.profile.keys {
                Keys::Drawn => u32::try_from(random.below(1 << 32)).unwrap_or(0),
                Keys::Reused if !found.free_keys.is_empty() => {
                    let old = found.free_keys.pop().unwrap_or(0);
                    (old & !0xff) | (old.wrapping_add(1) & 0xff)
                }
                Keys::ReusedAtOnce if !found.free_keys.is_empty() => {
                    found.free_keys.pop().unwrap_or(0)
                }
                Keys::Consecutive | Keys::Reused | Keys::ReusedAtOnce => {
                    found.next_key = found.next_key.wrapping_add(1);
                    found.next_key << 8
                }
            };
            if key != 0 && !keys.contains_key(&(device, key)) {
                return Ok(key);
            }
        }
    }

    /// Ends a registration. Acknowledged writes have landed, and no other write lands after this.
    pub(super) fn destroy_region(&mut self, id: u64) {
        self.place_all(|piece| piece.region == id);
        let device = self.regions.get(&id).and_then(|region| self.devices.get(region.device));
        if device.is_some_and(|device| device.profile.keeps_ended_keys) {
            return;
        }
        let Some(region) = self.regions.remove(&id) else { return };
        self.keys.remove(&(region.device, region.key));
        if let Some(device) = self.devices.get_mut(region.device) {
            device.free_keys.push(region.key);
        }
    }
}
