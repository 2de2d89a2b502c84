//! Memory with an owner that grants and revokes the right to write to it, using two queue pairs of
//! this process.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::pair::{PATIENCE, TrialPair};
use crate::adapter::{Access, Context, MemoryRegion, Pages, ProtectionDomain, Target};
use crate::devices::Choice;
use crate::status::WorkStatus;

/// The owner of some memory, and the only peer that may ever write there.
pub(super) struct Owner {
    // This field is the first, so that no queue pair outlives the memory to which it writes.
    pair: TrialPair,
    domain: ProtectionDomain,
    pages: Arc<Pages>,
    /// The registration through which the peer writes.
    memory: Option<MemoryRegion>,
    value: u8,
}

impl Owner {
    /// Creates an owner of `bytes` bytes of memory. The peer has no right yet.
    pub(super) fn new(context: &Context, choice: &Choice, bytes: usize) -> io::Result<Self> {
        let domain = ProtectionDomain::new(context)?;
        let pair = TrialPair::new(context, choice, &domain, bytes)?;
        let pages = Arc::new(Pages::new(bytes)?);
        let mut owner = Self { pair, domain, pages, memory: None, value: 0 };
        owner.connect()?;
        Ok(owner)
    }

    /// Grants the peer the right, and returns the key with which the peer may write.
    pub(super) fn grant(&mut self) -> io::Result<u32> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let made = MemoryRegion::new(&self.domain, &self.pages, self.pages.bytes(), access)?;
        Ok(self.memory.insert(made).remote_key())
    }

    /// Revokes the right.
    pub(super) fn revoke(&mut self) -> io::Result<()> {
        self.memory.take().ok_or(io::ErrorKind::NotFound)?.end()
    }

    /// Re-establishes the connection.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        self.pair.connect()
    }

    /// Lets the peer write with the right. Returns `None` if the write lands, or otherwise a
    /// description of what happened to it.
    pub(super) fn write(&mut self, key: u32) -> io::Result<Option<String>> {
        let name = self.post(key)?;
        let status = self.pair.wait_for(name)?;
        if status != Some(WorkStatus::Success) {
            return Ok(Some(status.map_or("no answer".into(), |status| status.to_string())));
        }
        // The write may be complete before it is visible.
        let until = Instant::now() + PATIENCE;
        while !self.is_all(self.value)? {
            if Instant::now() >= until {
                return Ok(Some("it is done and cannot be seen".into()));
            }
            self.pair.let_time_pass();
        }
        Ok(None)
    }

    /// Lets the peer post a write, and returns the request's name.
    pub(super) fn post(&mut self, key: u32) -> io::Result<u64> {
        self.value = self.value % 100 + 1;
        let address = self.pages.base().as_ptr().expose_provenance();
        let address = u64::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.pair.post(Target { address, key }, self.value)
    }

    /// Waits briefly, so that late writes can land.
    pub(super) fn let_time_pass(&self) {
        self.pair.let_time_pass();
    }

    /// Returns whether a request was refused or never completed, and the memory still equals
    /// `since`.
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

    /// Returns the memory's content.
    pub(super) fn look(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.pages.bytes()];
        self.pages.row().read(0, &mut bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(bytes)
    }

    fn is_all(&self, value: u8) -> io::Result<bool> {
        Ok(self.look()?.iter().all(|byte| *byte == value))
    }
}
