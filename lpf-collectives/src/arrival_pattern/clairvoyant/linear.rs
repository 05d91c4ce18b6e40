//! Listing 2: for each receiver each segment is looked for at each process.

use super::window::Window;
use super::{Instance, Transfer};

/// What a process did in a round.
#[derive(Clone, Copy, Default)]
struct Done {
    sent: bool,
    /// The segment that came: the state P'. It is not held before the next round.
    received: Option<u32>,
}

/// A column of each process.
pub(super) fn bytes(processes: usize, segments: usize) -> usize {
    8 * segments.div_ceil(64) * processes
}

pub(super) fn schedule(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    let n = instance.segments() as usize;
    let words = n.div_ceil(64);
    let mut window = Window::new(instance);
    // By place: a bit for each segment, and how many.
    let mut held = instance.column().repeat(instance.processes());
    let mut left = vec![n; instance.processes()];
    let mut done = vec![Done::default(); instance.processes()];
    let mut members = Vec::with_capacity(instance.processes());
    while window.advance() {
        members.clear();
        members.extend(window.members());
        members.iter().for_each(|&place| done[place] = Done::default());
        let sink = window.sink();
        for receiver in window.receivers() {
            let found = (0..n).find_map(|segment| {
                let (word, bit) = (segment / 64, 1 << (segment % 64));
                if receiver != sink && held[receiver * words + word] & bit == 0 {
                    return None;
                }
                let may_send = |&&z: &&usize| {
                    z != receiver && !done[z].sent && held[z * words + word] & bit != 0
                };
                members.iter().find(may_send).map(|&sender| (segment, sender))
            });
            let Some((segment, sender)) = found else { continue };
            let (word, bit) = (segment / 64, 1 << (segment % 64));
            let overwrites = held[receiver * words + word] & bit == 0;
            each(window.transfer(sender, receiver, segment, overwrites));
            held[sender * words + word] &= !bit;
            held[receiver * words + word] &= !bit;
            left[sender] -= 1;
            left[receiver] += usize::from(overwrites);
            done[sender].sent = true;
            done[receiver].received = Some(segment as u32);
        }
        for &place in &members {
            if let Some(segment) = done[place].received {
                held[place * words + segment as usize / 64] |= 1 << (segment % 64);
            }
            if left[place] == 0 {
                window.complete(place);
            }
        }
    }
}
