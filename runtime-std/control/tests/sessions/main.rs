//! Tests how members meet, and how a running member is joined and queried, over TCP and Unix
//! sockets.

mod control_server;
mod key_throughput;
mod long_streams;
mod meeting;
mod refusals;
mod sockets;
mod strangers;
mod support;
