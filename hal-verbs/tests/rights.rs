//! The right to write to a region, on fake devices that deviate in every way that verbs permit, in
//! virtual time.

#[path = "rights/freedoms.rs"]
mod freedoms;
#[path = "rights/storms.rs"]
mod storms;
#[path = "rights/trials.rs"]
mod trials;
#[path = "rights/world.rs"]
mod world;
