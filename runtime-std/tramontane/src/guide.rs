//! The guide's pages for programmers, whose examples are compiled with the other doc tests.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[doc = include_str!($path)]
            mod $name {}
        )*
    };
}

pages! {
    replicated_state: "../../../docs/guide/src/programs/replicated-state.md",
    group: "../../../docs/guide/src/programs/group.md",
    sending: "../../../docs/guide/src/programs/sending.md",
    views: "../../../docs/guide/src/programs/views.md",
    fixed: "../../../docs/guide/src/programs/fixed.md",
    blocks: "../../../docs/guide/src/programs/blocks.md",
    shard_state: "../../../docs/guide/src/programs/shard-state.md",
    shards: "../../../docs/guide/src/programs/shard-replicas.md",
}
