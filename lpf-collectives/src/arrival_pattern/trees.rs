//! Trees whose shape is known before any member arrives: Binomial-stat and Fibonacci-stat (Benoit, Canon and Marchal
//! 2013). A member receives the whole vectors of its children in a fixed order, and then sends its result to its
//! parent. If transfers take different times or members are late, all members wait for their turn.

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tree {
    /// The best if combining takes no time beside the transfers.
    Binomial,
    /// The best if combining takes as long as a transfer: a member receives the next vector while it combines.
    Fibonacci,
}

/// The children of every node, in the order in which they are received. A node's number is less than its
/// children's; node 0 is the root. The nodes of a subtree have consecutive numbers, in the order in which
/// their operands are combined. So the tree fits operators that do not commute.
pub fn children(tree: Tree, nodes: usize) -> Vec<Vec<usize>> {
    let by_birth = match tree {
        Tree::Binomial => binomial(nodes),
        Tree::Fibonacci => fibonacci(nodes),
    };
    let mut all = Vec::with_capacity(nodes);
    if nodes > 0 {
        number(&by_birth, 0, &mut all);
    }
    all
}

/// Numbers a subtree from its root on, in the order in which it is combined.
fn number(by_birth: &[Vec<usize>], node: usize, all: &mut Vec<Vec<usize>>) -> usize {
    let own = all.len();
    all.push(Vec::new());
    for &child in &by_birth[node] {
        let child = number(by_birth, child, all);
        all[own].push(child);
    }
    own
}

/// Node i > 0 has the parent i - 2^⌊log2 i⌋, which takes the last of its children first.
fn binomial(nodes: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); nodes];
    (1..nodes).rev().for_each(|node| all[node - (1 << node.ilog2())].push(node));
    all
}

/// A tree of order k is one of order k-1 whose root takes what one of order k-2 has: of the children of a node of
/// order m the orders are 0 to m-2, taken in that order. (The slides have the two the other way round, which is not
/// the tree that they say is the best.) Of the smallest such tree that is large enough the nodes of least order are
/// left out, of which all are leaves.
fn fibonacci(nodes: usize) -> Vec<Vec<usize>> {
    let (mut order, mut sizes) = (0usize, (1, 1));
    while sizes.0 < nodes {
        (order, sizes) = (order + 1, (sizes.1, sizes.0 + sizes.1));
    }
    let mut orders = vec![order];
    let mut all = vec![Vec::new(); nodes];
    for child_order in (0..order.saturating_sub(1)).rev() {
        for parent in 0..orders.len() {
            if orders.len() < nodes && orders[parent] >= child_order + 2 {
                all[parent].insert(0, orders.len());
                orders.push(child_order);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Random, gamma, makespans};

    /// When the root has all, where a node's children's transfers overlap what it combines.
    fn end(
        all: &[Vec<usize>],
        node: usize,
        transfer: &mut dyn FnMut() -> f64,
        combine: &dyn Fn(usize) -> f64,
    ) -> f64 {
        let (mut received, mut combined) = (0.0f64, 0.0f64);
        for &child in &all[node] {
            received = received.max(end(all, child, transfer, combine)) + transfer();
            combined = combined.max(received) + combine(node);
        }
        combined
    }

    /// Where each transfer takes 1 and each combination `c`.
    fn makespan(tree: Tree, nodes: usize, c: u64) -> u64 {
        end(&children(tree, nodes), 0, &mut || 1.0, &|_| c as f64) as u64
    }

    #[test]
    fn trees_take_as_long_as_known() {
        let nodes = [2, 3, 4, 5, 8, 13, 16, 21, 32, 34, 55, 64, 89, 128];
        let fibonacci = [2, 3, 4, 4, 5, 6, 7, 7, 8, 8, 9, 10, 10, 11];
        let binomial = [2, 3, 4, 4, 6, 7, 8, 8, 10, 10, 11, 12, 12, 14];
        for (nth, nodes) in nodes.into_iter().enumerate() {
            assert_eq!(makespan(Tree::Fibonacci, nodes, 1), fibonacci[nth], "Fibonacci of {nodes}");
            assert_eq!(makespan(Tree::Binomial, nodes, 1), binomial[nth], "binomial of {nodes}");
        }
        assert_eq!((makespan(Tree::Binomial, 64, 0), makespan(Tree::Fibonacci, 64, 0)), (6, 9));
    }

    #[test]
    fn every_node_has_one_parent_and_a_subtree_is_a_range() {
        fn size(all: &[Vec<usize>], node: usize) -> usize {
            let mut next = node + 1;
            for &child in &all[node] {
                assert_eq!(child, next, "what is combined next is what comes next");
                next += size(all, child);
            }
            next - node
        }
        for tree in [Tree::Binomial, Tree::Fibonacci] {
            assert!(children(tree, 0).is_empty());
            for nodes in 1..200 {
                let all = children(tree, nodes);
                assert_eq!((all.len(), size(&all, 0)), (nodes, nodes));
            }
        }
    }

    /// 64 nodes, transfers of mean 1 whose deviation is `cv`, and combinations that take no time, or as long in the mean:
    /// at a node always the same. What simulations of the slides' rules give.
    #[test]
    fn makespans_are_those_of_the_model() {
        let table: [(f64, bool, [f64; 2]); 8] = [
            (0.0, false, [6.0, 9.0]),
            (0.1, false, [6.40, 9.00]),
            (0.5, false, [8.18, 9.92]),
            (1.0, false, [10.66, 11.96]),
            (2.0, false, [16.2, 17.1]),
            (0.1, true, [12.01, 10.91]),
            (0.5, true, [13.71, 15.00]),
            (1.0, true, [18.06, 20.82]),
        ];
        let runs = 4000;
        for (cv, combines, known) in table {
            for (tree, known) in [Tree::Binomial, Tree::Fibonacci].into_iter().zip(known) {
                let (all, mut random) = (children(tree, 64), Random(9));
                let [(mean, off), _] = makespans(runs, || {
                    let c = [0.0; 64].map(|c| if combines { gamma(&mut random, cv) } else { c });
                    end(&all, 0, &mut || gamma(&mut random, cv), &|node| c[node])
                });
                let rounded = if cv > 1.0 { 0.06 } else { 0.01 };
                let is = format!("{tree:?}, {cv}, {combines}: {mean} ({off}) and not {known}");
                assert!((mean - known).abs() < 4.0 * off + rounded, "{is}");
            }
        }
    }

    /// Transfers that take 1 to some `most`, in units of what any tree takes where each takes 1.
    #[test]
    fn trees_take_no_longer_than_their_bounds() {
        let mut random = Random(10);
        let log_phi = f64::midpoint(1.0, 5f64.sqrt()).log2();
        for _ in 0..5000 {
            let (nodes, most) = (2 + random.below(127) as usize, 1 + random.below(10));
            let least = f64::from(nodes.next_power_of_two().ilog2());
            let bounds = [most as f64, most as f64 / log_phi + most as f64 / least];
            for (tree, bound) in [Tree::Binomial, Tree::Fibonacci].into_iter().zip(bounds) {
                let mut transfer = || (1 + random.below(most)) as f64;
                let is = end(&children(tree, nodes), 0, &mut transfer, &|_| 0.0) / least;
                assert!(is <= bound, "{tree:?} of {nodes}, up to {most}: {is} and not {bound}");
            }
        }
    }
}
