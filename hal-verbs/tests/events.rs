//! The reaction of members to device events and to killed processes: over fake devices, in virtual
//! time.

#[path = "events/device.rs"]
mod device;
#[path = "events/killed.rs"]
mod killed;
#[path = "events/members/mod.rs"]
mod members;
#[path = "events/regions.rs"]
mod regions;
