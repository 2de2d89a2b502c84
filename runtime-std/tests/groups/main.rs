//! Groups as used by programs. Their members are threads of this process, over each fabric.

mod awaited_slots;
mod block_generations;
mod block_group_support;
mod block_groups;
mod busy;
mod changing;
mod durable;
mod durable_receipts;
mod fixed;
mod fixed_kills;
mod fixed_support;
mod followers;
mod group_support;
mod joining;
mod joins;
mod large;
mod leaving;
mod log_reader;
mod long_upcalls;
mod many_views;
mod over_tcp;
mod relays;
mod reserved_clients;
mod slow_members;
mod spans;
mod stepped;
