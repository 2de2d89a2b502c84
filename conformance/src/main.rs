//! `tramontane-conformance`: judges any atomic multicast.

fn main() {}
