//! The driver: starts a system's members through its adapter, makes them do what a scenario says, and
//! records what happens as a history. It judges nothing and knows no implementation.
