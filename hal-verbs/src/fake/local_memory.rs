//! The local memory of a queue pair, as its requests and receives name it.

use super::hardware::Hardware;
use super::request::LocalBytes;
use crate::adapter::Access;

/// `IBV_WC_LOC_LEN_ERR` and `IBV_WC_LOC_PROT_ERR`.
pub(super) const LOCAL_LENGTH: u32 = 1;
pub(super) const LOCAL_PROTECTION: u32 = 4;

impl Hardware {
    /// Returns the region and offset of a range of local memory, if its key is valid for that
    /// range.
    fn local(&self, id: u64, range: LocalBytes, access: Access) -> Result<(u64, usize), u32> {
        let pair = self.pairs.get(&id).ok_or(LOCAL_PROTECTION)?;
        let found = self.keys.get(&(pair.device, range.key)).ok_or(LOCAL_PROTECTION)?;
        let region = self.regions.get(found).ok_or(LOCAL_PROTECTION)?;
        let offset = region.offset(range.address, range.length).ok_or(LOCAL_PROTECTION)?;
        if region.domain != pair.domain || !region.access.contains(access) {
            return Err(LOCAL_PROTECTION);
        }
        Ok((*found, offset))
    }

    /// Checks whether a range of local memory may be written.
    pub(super) fn writable(&self, id: u64, range: Option<LocalBytes>) -> Result<(), u32> {
        let Some(range) = range else { return Ok(()) };
        self.local(id, range, Access::LOCAL_WRITE).map(|_| ())
    }

    /// Reads a range of local memory.
    pub(super) fn read_local(&self, id: u64, range: Option<LocalBytes>) -> Result<Vec<u8>, u32> {
        let Some(range) = range.filter(|range| range.length > 0) else { return Ok(Vec::new()) };
        let (region, offset) = self.local(id, range, Access::empty())?;
        self.read_region(region, offset, range.length).ok_or(LOCAL_PROTECTION)
    }

    /// Writes to a range of local memory. Refuses bytes that do not fit into the range.
    pub(super) fn write_local(
        &self,
        id: u64,
        range: Option<LocalBytes>,
        content: &[u8],
    ) -> Result<(), u32> {
        if content.is_empty() {
            return Ok(());
        }
        let range = range.ok_or(LOCAL_LENGTH)?;
        let length = u32::try_from(content.len()).map_err(|_| LOCAL_LENGTH)?;
        if length > range.length {
            return Err(LOCAL_LENGTH);
        }
        let (region, offset) = self.local(id, range, Access::LOCAL_WRITE)?;
        self.store(region, offset, content);
        Ok(())
    }
}
