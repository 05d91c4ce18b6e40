//! Lightweight Parallel Foundations on nodes: threads inside a node, and any other engine between nodes.
//!
//! A *node* is one process of the system. Its threads are processes of the section, numbered node by node. The engine
//! between nodes, `N`, sees one process for each node, and carries one stream for each pair of nodes.
//!
//! | part | where |
//! |---|---|
//! | what the threads of a node share: their process of `N`, under a lock | [`node`] |
//! | the full sync: a barrier of the threads, a superstep of `N` by one of them, a barrier, and the node's own requests | [`superstep`] |
//! | links between nodes: a link of `N` for each | [`links`] |
//! | waits, which look at both levels | [`waits`] |
//! | sections: the number of threads of each node, exec, rehook | [`sections`] |
//!
//! The design, with the reasons: the book's page on hybrid sections.

mod engine;
mod layout;
mod links;
mod node;
mod sections;
mod superstep;
mod waits;

pub use engine::{Hybrid, HybridBoard};
pub use layout::spread;
pub use sections::run_node;
