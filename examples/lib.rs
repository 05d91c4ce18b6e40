//! The examples, in the order to read them: `hello`, `inner_product`, `error_broadcast`, `rehook`,
//! `hook`; with collectives `sample_sort`, `power_iteration`, `histogram`, `transpose`, `grid`, `training`. Each is a program of its own: `cargo run --release --example hello`. `hook_tcp`
//! and `hook_mpi` are for several processes, started as they say.
//!
//! This library is empty; a package of examples alone needs one.
