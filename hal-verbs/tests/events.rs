//! What becomes of members when a device says something of itself, or a process is killed: over
//! fake devices, in virtual time.

#[path = "events/device.rs"]
mod device;
#[path = "events/killed.rs"]
mod killed;
#[path = "events/members/mod.rs"]
mod members;
#[path = "events/regions.rs"]
mod regions;
