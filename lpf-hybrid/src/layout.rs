//! How the processes of a section are spread over nodes.

use lpf_core::Pid;

/// The processes of each node if a section of `wanted` processes runs on nodes that have room for these: an equal share of
/// each, the remainder on the first ones, and no more than it has room for. Nodes that would have none are left out.
pub fn spread(wanted: Pid, rooms: &[Pid]) -> Vec<Pid> {
    let mut sizes = vec![0; rooms.len()];
    let mut left = wanted.min(rooms.iter().sum());
    while left > 0 {
        let open = (0..rooms.len()).filter(|&node| sizes[node] < rooms[node]);
        let open: Vec<usize> = open.collect();
        let (share, more) = (left / open.len(), left % open.len());
        for (nth, &node) in open.iter().enumerate() {
            let wish = share + Pid::from(nth < more);
            let given = wish.min(rooms[node] - sizes[node]);
            sizes[node] += given;
            left -= given;
        }
    }
    sizes.retain(|&size| size > 0);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_processes_are_spread_over_nodes_first() {
        assert_eq!(spread(3, &[4, 4, 4, 4]), [1, 1, 1]);
        assert_eq!(spread(6, &[4, 4, 4, 4]), [2, 2, 1, 1]);
        assert_eq!(spread(16, &[4, 4, 4, 4]), [4, 4, 4, 4]);
    }

    #[test]
    fn a_full_node_gives_its_share_to_the_others() {
        assert_eq!(spread(6, &[4, 1, 4]), [3, 1, 2]);
        assert_eq!(spread(usize::MAX, &[4, 2]), [4, 2]);
        assert_eq!(spread(5, &[1, 1, 4]), [1, 1, 3]);
    }
}
