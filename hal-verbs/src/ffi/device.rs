//! Devices, opened devices, and their properties.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

use super::libibverbs::{
    ibv_ack_async_event, ibv_async_event, ibv_async_event_element_t, ibv_close_device, ibv_context,
    ibv_device, ibv_device_attr, ibv_free_device_list, ibv_get_async_event, ibv_get_device_list,
    ibv_get_device_name, ibv_gid, ibv_open_device, ibv_port_attr, ibv_query_device, ibv_query_gid,
    ibv_query_port, open,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{check, completion, last_error};
use crate::adapter::{AsyncEvent, DeviceAttributes, PortAttributes};
use crate::devices::GidKind;

/// `IBV_QPF_GRH_REQUIRED` in `<infiniband/verbs.h>`.
const GLOBAL_ROUTE_NEEDED: u8 = 1;

/// The devices that the kernel knows.
pub(crate) struct DeviceList {
    list: NonNull<*mut ibv_device>,
    count: usize,
}

impl DeviceList {
    /// Queries the kernel. The list is empty if the kernel has no RDMA at all.
    ///
    /// # Errors
    /// Fails with an error that contains [`NoLibrary`](super::NoLibrary) if libibverbs is missing.
    pub(crate) fn new() -> io::Result<Self> {
        open().map_err(io::Error::other)?;
        super::features::prepare_forks();
        let mut count = 0;
        // SAFETY: `count` is writable; the result is null or a list of `count` devices that we
        // free.
        let list = unsafe { ibv_get_device_list(&raw mut count) };
        let list = NonNull::new(list).ok_or_else(last_error)?;
        Ok(Self { list, count: usize::try_from(count).unwrap_or(0) })
    }

    /// Returns the number of devices.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns a device's name, or `None` if there is no such device.
    pub(crate) fn name(&self, index: usize) -> Option<String> {
        let device = self.device(index)?;
        // SAFETY: the device is in the list, which is valid; its name is a string that is valid for
        // as long.
        let name = unsafe { ibv_get_device_name(device.as_ptr()) };
        // SAFETY: as above; null is handled.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// Opens the device at this index.
    pub(crate) fn open(&self, index: usize) -> io::Result<Context> {
        let device = self.device(index).ok_or(io::ErrorKind::NotFound)?;
        // SAFETY: the device is in the list, which is valid. A context may outlive the list,
        // because libibverbs counts references.
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
        // SAFETY: the list is freed once, here.
        unsafe { ibv_free_device_list(self.list.as_ptr()) };
    }
}

/// An opened device.
#[derive(Debug)]
pub(crate) struct Context {
    raw: NonNull<ibv_context>,
}

// SAFETY: libibverbs may be called on one context from several threads.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

impl Context {
    pub(super) const fn raw(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    /// Queries the device.
    pub(crate) fn attributes(&self) -> io::Result<DeviceAttributes> {
        let mut attributes = MaybeUninit::<ibv_device_attr>::zeroed();
        // SAFETY: the context is open; the structure is writable.
        check(unsafe { ibv_query_device(self.raw(), attributes.as_mut_ptr()) })?;
        // SAFETY: the structure consists of plain numbers, and was zeroed before the call filled
        // it.
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

    /// Queries a port; ports are numbered from 1.
    pub(crate) fn port(&self, number: u8) -> io::Result<PortAttributes> {
        let mut port = MaybeUninit::<ibv_port_attr>::zeroed();
        // SAFETY: the context is open; the structure is writable, and zeroed in case an old library
        // leaves fields untouched.
        check(unsafe { ibv_query_port(self.raw(), number, port.as_mut_ptr()) })?;
        // SAFETY: the structure consists of plain numbers, and was zeroed before the call filled
        // it.
        let port = unsafe { port.assume_init() };
        Ok(PortAttributes {
            state: port.state,
            mtu_max: port.max_mtu,
            mtu_active: port.active_mtu,
            message_bytes_max: port.max_msg_sz,
            gids: usize::try_from(port.gid_tbl_len).unwrap_or(0),
            lid: port.lid,
            link_layer: port.link_layer,
            needs_global_route: port.flags & GLOBAL_ROUTE_NEEDED != 0,
        })
    }

    /// Returns an entry of a port's address table, which is all zero if unused.
    pub(crate) fn gid(&self, port: u8, index: u8) -> io::Result<Ipv6Addr> {
        let mut gid = ibv_gid::new([0; 16]);
        // SAFETY: the context is open; the address is writable.
        check(unsafe { ibv_query_gid(self.raw(), port, index.into(), &raw mut gid) })?;
        Ok(Ipv6Addr::from(gid.raw))
    }

    /// Takes the next asynchronous event, if there is one, without blocking.
    pub(crate) fn take_event(&self) -> Option<AsyncEvent> {
        match self.event_waits() {
            Waits::Nothing => return None,
            // The descriptor itself no longer works: the device has been removed.
            Waits::Hangup => return Some(AsyncEvent::DeviceFatal),
            Waits::Event => {}
        }
        let mut event = MaybeUninit::<ibv_async_event>::zeroed();
        // SAFETY: the context is open; the structure is writable. An event is waiting, so this
        // returns.
        if unsafe { ibv_get_async_event(self.raw(), event.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the field is inside the structure that the call filled, and is read as the number
        // that C stores there.
        let kind = unsafe { (&raw const (*event.as_ptr()).event_type).cast::<u32>().read() };
        // SAFETY: the call filled the structure; the kind decides which field of the union is
        // valid.
        let told = unsafe { translate(kind, &(*event.as_ptr()).element) };
        // SAFETY: the event is acknowledged once, unchanged.
        unsafe { ibv_ack_async_event(event.as_mut_ptr()) };
        Some(told)
    }

    fn event_waits(&self) -> Waits {
        let descriptor = self.as_fd();
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
        // SAFETY: the context is closed once, here; all objects that held it have been destroyed.
        unsafe { ibv_close_device(self.raw()) };
    }
}

impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the context and its descriptor are open while `self` exists.
        unsafe { BorrowedFd::borrow_raw((*self.raw()).async_fd) }
    }
}

/// Translates an event, by its number in `<infiniband/verbs.h>`.
///
/// # Safety
/// The element must belong to an event of that kind that has not been acknowledged yet.
unsafe fn translate(kind: u32, element: &ibv_async_event_element_t) -> AsyncEvent {
    // SAFETY: for the kinds that use it below, the element is a port number.
    let port = || u8::try_from(unsafe { element.port_num }).unwrap_or(0);
    match kind {
        // SAFETY: this is an event of a completion queue, which is valid until its events have been
        // acknowledged.
        0 => AsyncEvent::CompletionQueueError(completion::id_of(unsafe { element.cq })),
        // SAFETY: this is an event of a queue pair, which is valid until its events have been
        // acknowledged.
        1..=3 | 7 => AsyncEvent::QueuePairError(unsafe { (*element.qp).qp_num }),
        8 => AsyncEvent::DeviceFatal,
        9 => AsyncEvent::PortActive(port()),
        10 => AsyncEvent::PortError(port()),
        11 => AsyncEvent::LidChange(port()),
        12 => AsyncEvent::PkeyChange(port()),
        13 | 17 => AsyncEvent::SubnetManager(port()),
        18 => AsyncEvent::GidChange(port()),
        other => AsyncEvent::Other(other),
    }
}

/// In this library's old interface, the kernel reports an entry's kind only in a file.
pub(crate) fn gid_kind(device: &str, port: u8, index: u8, is_ethernet: bool) -> GidKind {
    let path = format!("/sys/class/infiniband/{device}/ports/{port}/gid_attrs/types/{index}");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match (is_ethernet, text.trim()) {
        (false, _) => GidKind::InfiniBand,
        (true, "RoCE v2") => GidKind::RoceV2,
        (true, _) => GidKind::RoceV1,
    }
}

/// Converts a count that C stores as a signed number.
fn count(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
