//! The right to write to a region on devices that take every freedom that verbs leave: fake ones,
//! in virtual time.

#[path = "rights/freedoms.rs"]
mod freedoms;
#[path = "rights/storms.rs"]
mod storms;
#[path = "rights/trials.rs"]
mod trials;
#[path = "rights/world.rs"]
mod world;
