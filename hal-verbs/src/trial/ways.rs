//! Granting and revoking the right to write by each method, on the same two queue pairs.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::RightsWay;
use super::pair::{PATIENCE, Pair};
use crate::adapter::{
    Access, Context, MemoryRegion, MemoryWindow, Pages, ProtectionDomain, Target,
};
use crate::devices::Choice;
use crate::status::WorkStatus;

const READ: Access = Access::REMOTE_READ;
const BOTH: Access = Access::REMOTE_READ.union(Access::REMOTE_WRITE);

/// The longest write: many packets, but still quick on an emulated device.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// The owner of some memory, and the only peer that may ever write there.
pub(super) struct Owner {
    // The first field, so that no queue pair outlives the memory it writes to.
    pair: Pair,
    way: RightsWay,
    domain: ProtectionDomain,
    pages: Arc<Pages>,
    window: Option<MemoryWindow>,
    /// The registration with which the peer writes, or to which windows are bound.
    memory: Option<Arc<MemoryRegion>>,
    value: u8,
}

impl Owner {
    /// Creates an owner of `bytes` of memory; the peer has no right.
    pub(super) fn new(
        context: &Context,
        choice: &Choice,
        way: RightsWay,
        bytes: usize,
    ) -> io::Result<Self> {
        let domain = ProtectionDomain::new(context)?;
        let bytes = bytes.max(1);
        let pair = Pair::new(context, choice, &domain, bytes.min(WRITE_BYTES_MAX))?;
        let pages = Arc::new(Pages::new(bytes)?);
        let access = match way {
            RightsWay::Registration => None,
            RightsWay::Window => Some(Access::LOCAL_WRITE | Access::BIND_WINDOWS),
            RightsWay::Flags | RightsWay::Reset => Some(KEY_ACCESS),
        };
        let memory = match access {
            Some(access) => Some(register(&domain, &pages, bytes, access)?),
            None => None,
        };
        let window = match way {
            RightsWay::Window => Some(MemoryWindow::new(&domain)?),
            _ => None,
        };
        let mut owner = Self { pair, way, domain, pages, window, memory, value: 0 };
        owner.connect()?;
        Ok(owner)
    }

    /// Returns the number of commands to the kernel so far.
    pub(super) const fn commands(&self) -> u32 {
        self.pair.commands
    }

    /// Grants the peer the right, and returns the key that it may write with.
    pub(super) fn grant(&mut self) -> io::Result<u32> {
        match self.way {
            RightsWay::Registration => {
                let bytes = self.pages.bytes();
                self.memory = Some(register(&self.domain, &self.pages, bytes, KEY_ACCESS)?);
                self.pair.commands += 1;
            }
            RightsWay::Window => {
                let Self { pair, window, memory, .. } = self;
                let (Some(window), Some(memory)) = (window, memory) else {
                    return Err(io::ErrorKind::NotFound.into());
                };
                return pair.bind(window, memory);
            }
            RightsWay::Flags => self.set_flags(BOTH)?,
            RightsWay::Reset => self.pair.connect(BOTH)?,
        }
        let memory = self.memory.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(memory.remote_key())
    }

    /// Revokes the right.
    pub(super) fn revoke(&mut self) -> io::Result<()> {
        match self.way {
            RightsWay::Registration => {
                let memory = self.memory.take().and_then(Arc::into_inner);
                self.pair.commands += 1;
                memory.ok_or(io::ErrorKind::NotFound)?.end()
            }
            RightsWay::Window => {
                let window = self.window.as_ref().ok_or(io::ErrorKind::NotFound)?;
                self.pair.invalidate(window)
            }
            RightsWay::Flags => self.set_flags(READ),
            RightsWay::Reset => {
                // The other end learns of it later, and writes until then.
                self.pair.commands += 1;
                self.pair.owner.reset()
            }
        }
    }

    /// Re-establishes the connection, without the right.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        self.pair.connect(match self.way {
            // These rely on the key only.
            RightsWay::Registration | RightsWay::Window => BOTH,
            RightsWay::Flags | RightsWay::Reset => READ,
        })
    }

    /// Lets the peer write with the right. Returns `None` if the write lands, and otherwise what
    /// happened to it.
    pub(super) fn write(&mut self, key: u32) -> io::Result<Option<String>> {
        let name = self.post(key)?;
        let status = self.pair.wait_for(name)?;
        if status != Some(WorkStatus::Success) {
            return Ok(Some(status.map_or("no answer".into(), |status| status.to_string())));
        }
        // The write may be done before it is visible.
        let until = Instant::now() + PATIENCE;
        while !self.is_all(self.value)? {
            if Instant::now() >= until {
                return Ok(Some("it is done and cannot be seen".into()));
            }
            self.pair.let_time_pass();
        }
        Ok(None)
    }

    /// Lets the peer post a write; returns the request's name.
    pub(super) fn post(&mut self, key: u32) -> io::Result<u64> {
        self.value = self.value % 100 + 1;
        let address = self.pages.base().as_ptr().expose_provenance();
        let address = u64::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.pair.post(Target { address, key }, self.value)
    }

    /// Waits for a moment.
    pub(super) fn let_time_pass(&self) {
        self.pair.let_time_pass();
    }

    /// Returns whether a request was refused, or never done, and nothing has landed since `since`.
    pub(super) fn is_denied(&mut self, name: u64, since: &[u8]) -> io::Result<bool> {
        let status = self.pair.wait_for(name)?;
        Ok(status != Some(WorkStatus::Success) && self.look()? == since)
    }

    /// Returns whether a request that was in flight at the revocation has changed nothing since.
    pub(super) fn has_stopped(&mut self, name: u64, since: &[u8]) -> io::Result<bool> {
        self.pair.wait_for(name)?;
        self.pair.let_time_pass();
        Ok(self.look()? == since)
    }

    /// Returns the memory's content within the range of writes.
    pub(super) fn look(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.pages.bytes().min(WRITE_BYTES_MAX)];
        self.pages.row().read(0, &mut bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(bytes)
    }

    fn is_all(&self, value: u8) -> io::Result<bool> {
        Ok(self.look()?.iter().all(|byte| *byte == value))
    }

    fn set_flags(&mut self, access: Access) -> io::Result<()> {
        self.pair.commands += 1;
        self.pair.owner.set_access(access)
    }
}

const KEY_ACCESS: Access = Access::LOCAL_WRITE.union(Access::REMOTE_WRITE);

fn register(
    domain: &ProtectionDomain,
    pages: &Arc<Pages>,
    bytes: usize,
    access: Access,
) -> io::Result<Arc<MemoryRegion>> {
    MemoryRegion::new(domain, pages, bytes, access).map(Arc::new)
}
