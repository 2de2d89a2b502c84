//! Devices, opened devices, and what can be asked of them.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::Ipv6Addr;
use std::ptr::NonNull;

use rdma_sys::{
    ___ibv_query_port, ibv_ack_async_event, ibv_async_event, ibv_close_device, ibv_context,
    ibv_device, ibv_device_attr, ibv_free_device_list, ibv_get_async_event, ibv_get_device_list,
    ibv_get_device_name, ibv_gid, ibv_open_device, ibv_port_attr, ibv_query_device, ibv_query_gid,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{check, last_error};

/// The devices that the kernel knows.
pub(crate) struct DeviceList {
    list: NonNull<*mut ibv_device>,
    count: usize,
}

impl DeviceList {
    /// Asks the kernel. An empty list where there is no RDMA at all.
    pub(crate) fn new() -> io::Result<Self> {
        let mut count = 0;
        // SAFETY: `count` is writable; the result is null or a list of `count` devices that we
        // free.
        let list = unsafe { ibv_get_device_list(&raw mut count) };
        let list = NonNull::new(list).ok_or_else(last_error)?;
        Ok(Self { list, count: usize::try_from(count).unwrap_or(0) })
    }

    /// How many.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The name of one; none if there is no such device.
    pub(crate) fn name(&self, index: usize) -> Option<String> {
        let device = self.device(index)?;
        // SAFETY: a device of the list, which lives; its name is a string that lives as long.
        let name = unsafe { ibv_get_device_name(device.as_ptr()) };
        // SAFETY: as above; null is told apart.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// Opens one.
    pub(crate) fn open(&self, index: usize) -> io::Result<Context> {
        let device = self.device(index).ok_or(io::ErrorKind::NotFound)?;
        // SAFETY: a device of the list, which lives. A context outlives the list: libibverbs
        // counts.
        let raw = unsafe { ibv_open_device(device.as_ptr()) };
        NonNull::new(raw).map(|raw| Context { raw }).ok_or_else(last_error)
    }

    fn device(&self, index: usize) -> Option<NonNull<ibv_device>> {
        if index >= self.count {
            return None;
        }
        // SAFETY: the list has `count` entries.
        NonNull::new(unsafe { *self.list.as_ptr().add(index) })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: freed once, here.
        unsafe { ibv_free_device_list(self.list.as_ptr()) };
    }
}

/// What a device says of itself: the parts that are used.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAttributes {
    pub(crate) firmware: String,
    pub(crate) node_guid: u64,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) ports: u8,
    pub(crate) queue_pairs_max: u32,
    pub(crate) work_requests_max: u32,
    pub(crate) scatter_max: u32,
    pub(crate) completion_entries_max: u32,
    pub(crate) memory_regions_max: u32,
    pub(crate) region_bytes_max: u64,
    pub(crate) reads_max: u32,
}

/// What a port says of itself: the parts that are used, as libibverbs has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortAttributes {
    pub(crate) state: u32,
    pub(crate) mtu_max: u32,
    pub(crate) mtu_active: u32,
    pub(crate) message_bytes_max: u32,
    pub(crate) gids: usize,
    pub(crate) lid: u16,
    pub(crate) link_layer: u8,
}

/// An opened device.
#[derive(Debug)]
pub(crate) struct Context {
    raw: NonNull<ibv_context>,
}

// SAFETY: libibverbs may be called on one context from several threads.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) const fn raw(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    /// Asks the device.
    pub(crate) fn attributes(&self) -> io::Result<DeviceAttributes> {
        let mut attributes = MaybeUninit::<ibv_device_attr>::zeroed();
        // SAFETY: the context is open; the structure is writable.
        check(unsafe { ibv_query_device(self.raw(), attributes.as_mut_ptr()) })?;
        // SAFETY: numbers alone, zero before the call filled them.
        let attributes = unsafe { attributes.assume_init() };
        let firmware: Vec<u8> = attributes.fw_ver.iter().map(|byte| byte.cast_unsigned()).collect();
        let firmware = CStr::from_bytes_until_nul(&firmware).unwrap_or_default();
        Ok(DeviceAttributes {
            firmware: firmware.to_string_lossy().into_owned(),
            node_guid: u64::from_be(attributes.node_guid),
            vendor_id: attributes.vendor_id,
            vendor_part_id: attributes.vendor_part_id,
            ports: attributes.phys_port_cnt,
            queue_pairs_max: count(attributes.max_qp),
            work_requests_max: count(attributes.max_qp_wr),
            scatter_max: count(attributes.max_sge),
            completion_entries_max: count(attributes.max_cqe),
            memory_regions_max: count(attributes.max_mr),
            region_bytes_max: attributes.max_mr_size,
            reads_max: count(attributes.max_qp_rd_atom),
        })
    }

    /// Asks a port; they count from 1.
    pub(crate) fn port(&self, number: u8) -> io::Result<PortAttributes> {
        let mut port = MaybeUninit::<ibv_port_attr>::zeroed();
        // SAFETY: the context is open; the structure is writable, and all zero where an old library
        // leaves fields alone.
        check(unsafe { ___ibv_query_port(self.raw(), number, port.as_mut_ptr()) })?;
        // SAFETY: numbers alone, zero before the call filled them.
        let port = unsafe { port.assume_init() };
        Ok(PortAttributes {
            state: port.state,
            mtu_max: port.max_mtu,
            mtu_active: port.active_mtu,
            message_bytes_max: port.max_msg_sz,
            gids: usize::try_from(port.gid_tbl_len).unwrap_or(0),
            lid: port.lid,
            link_layer: port.link_layer,
        })
    }

    /// One entry of a port's table of addresses. All zero where there is none.
    pub(crate) fn gid(&self, port: u8, index: i32) -> io::Result<Ipv6Addr> {
        let mut gid = ibv_gid { raw: [0; 16] };
        // SAFETY: the context is open; the address is writable.
        check(unsafe { ibv_query_gid(self.raw(), port, index, &raw mut gid) })?;
        // SAFETY: 16 bytes either way.
        Ok(Ipv6Addr::from(unsafe { gid.raw }))
    }

    /// Whether the device said that it failed or went away, or that a completion queue did. Takes
    /// the events that wait; never blocks.
    pub(crate) fn has_failed(&self) -> bool {
        const EVENTS_MAX: u32 = 64;
        /// `IBV_EVENT_CQ_ERR` and `IBV_EVENT_DEVICE_FATAL` in `<infiniband/verbs.h>`.
        const FATAL: [u32; 2] = [0, 8];
        for _ in 0..EVENTS_MAX {
            match self.event_waits() {
                Waits::Nothing => return false,
                // The descriptor itself is dead: the device was taken away.
                Waits::Hangup => return true,
                Waits::Event => {}
            }
            let mut event = MaybeUninit::<ibv_async_event>::zeroed();
            // SAFETY: the context is open; the structure is writable. An event waits, so this
            // returns.
            if unsafe { ibv_get_async_event(self.raw(), event.as_mut_ptr()) } != 0 {
                return false;
            }
            // SAFETY: inside the structure that the call filled; read as the number that C has
            // there.
            let kind = unsafe { (&raw const (*event.as_ptr()).event_type).cast::<u32>().read() };
            // SAFETY: acknowledged once, unchanged.
            unsafe { ibv_ack_async_event(event.as_mut_ptr()) };
            if FATAL.contains(&kind) {
                return true;
            }
        }
        false
    }

    fn event_waits(&self) -> Waits {
        // SAFETY: the context is open, and so is its descriptor, for the time of the call.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw((*self.raw()).async_fd) };
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !matches!(poll(&mut descriptors, Some(&now)), Ok(1)) {
            return Waits::Nothing;
        }
        let found = descriptors[0].revents();
        if found.contains(PollFlags::IN) {
            Waits::Event
        } else if found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            Waits::Hangup
        } else {
            Waits::Nothing
        }
    }
}

enum Waits {
    Nothing,
    Event,
    Hangup,
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: closed once, here; whatever stands on it held it and is gone.
        unsafe { ibv_close_device(self.raw()) };
    }
}

/// C has counts as signed numbers.
fn count(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
