//! Listing 2 word by word, with what is decided where it says two things: times as they are, no round is jumped over,
//! and nothing is shared with the schedulers that it is compared with.

use super::super::{Instance, Transfer};

/// In canonical order. Every idle round takes a turn of the loop.
pub(super) fn schedule(instance: &Instance) -> Vec<Transfer> {
    let (p, n) = (instance.processes(), instance.segments() as usize);
    let (root, d) = (instance.root(), u128::from(instance.round_time()));
    let mut available: Vec<u128> =
        instance.arrivals().iter().map(|&time| u128::from(time)).collect();
    let mut held = vec![vec![true; n]; p];
    let mut transfers = Vec::new();
    for round in 0.. {
        let mut group: Vec<usize> = (0..p).filter(|&i| held[i].contains(&true)).collect();
        group.sort_by_key(|&i| (available[i], i));
        if group.len() < 2 {
            break;
        }
        let (head, end) = (group[0], available[group[0]] + d);
        group.retain(|&i| available[i] < end);
        let sink = if group.contains(&root) { root } else { head };
        let others = group.iter().copied().filter(|&i| i != sink);
        let mut sent = vec![false; p];
        let mut came = vec![None; p];
        for to in std::iter::once(sink).chain(others) {
            let mut wanted = (0..n).filter(|&segment| to == sink || held[to][segment]);
            let pair = wanted.find_map(|segment| {
                let mut senders = group.iter().copied().filter(|&from| {
                    from != to && held[from][segment] && came[from] != Some(segment) && !sent[from]
                });
                senders.next().map(|from| (segment, from))
            });
            let Some((segment, from)) = pair else { continue };
            let (sender, receiver, overwrites) = (from, to, !held[to][segment]);
            transfers.push(Transfer {
                round,
                sender,
                receiver,
                segment: segment as u32,
                overwrites,
            });
            held[from][segment] = false;
            held[to][segment] = true;
            sent[from] = true;
            came[to] = Some(segment);
        }
        group.iter().for_each(|&i| available[i] += d);
    }
    transfers.sort_unstable();
    transfers
}
