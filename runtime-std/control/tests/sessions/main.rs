//! How members meet, and how a running one is joined and asked: over TCP and Unix sockets.

mod doors;
mod key_throughput;
mod lifelines;
mod long_streams;
mod meeting;
mod refusals;
mod sockets;
mod strangers;
mod support;
