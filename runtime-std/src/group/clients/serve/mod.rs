//! The thread that serves clients.
//!
//! | file | subject |
//! |---|---|
//! | `service` | the thread |
//! | `connection` | one client |
//! | `member` | the member whose clients are served |
//! | `publisher` | a client that sends |
//! | `subscriber` | a client that reads |
//! | `follower` | a client that takes over the state |
//! | `outlet` | how their lines enter the ring |
//! | `leases` | clients that no member has heard from for long |
//! | `cut` | why a client is cut off |
//! | `stall` | how long a client has received nothing |

pub(crate) mod connection;
pub(crate) mod cut;
pub(crate) mod follower;
pub(crate) mod leases;
pub(crate) mod member;
pub(crate) mod outlet;
pub(crate) mod publisher;
pub(crate) mod service;
pub(crate) mod stall;
pub(crate) mod subscriber;
