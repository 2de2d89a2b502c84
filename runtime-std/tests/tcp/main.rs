//! Members over TCP.

mod multicast;
