//! The control plane of a member: its server, and its calls to peers.
//!
//! | file | subject |
//! |---|---|
//! | `control_endpoints` | addresses and key of the control servers |
//! | `control_service` | the control server |
//! | `peer_connector` | calls to peers |
//! | `clients` | external clients, as the rest of a member sees them |
//! | `probe` | whether a member is already running |

pub(crate) mod clients;
pub(crate) mod control_endpoints;
pub(crate) mod control_service;
pub(crate) mod peer_connector;
pub(crate) mod probe;
