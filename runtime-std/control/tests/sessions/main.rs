//! How members meet, and how a running one is joined and asked: over TCP and Unix sockets.

mod control_server;
mod key_throughput;
mod long_streams;
mod meeting;
mod refusals;
mod sockets;
mod strangers;
mod support;
