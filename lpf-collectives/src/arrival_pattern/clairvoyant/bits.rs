//! The schedule without a tree: for all segments at once it is counted who may send them.
//!
//! Of every segment it is known by how many it can be sent. The counts lie across, so that what a sender holds is
//! taken off all of them by some operations on whole columns ([`counts`]). With "by anybody" and "by two or more" a
//! receiver finds its segment as the first bit of a column, and the sender as the first bit of the segment's row of
//! processes from the head on ([`find`]).
//!
//! Each transfer waits for the one before it: its sender takes part in the counts no more. So nothing is done on that
//! way which can be done beside it or after the round, and nothing branches on what cannot be foretold.

mod counts;
mod find;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod shape;
mod words;

use counts::{Able, Holders, TIMES, kept, planes};
use find::{Group, sender, wanted, wanted_by_sink};
use shape::{Fixed, Many, Shape, Table};
use words::{Wide, Words};

use super::window::Window;
use super::{Instance, Transfer};

/// Of a column and of a row.
fn chunks<W: Words>(processes: usize, segments: usize) -> (usize, usize) {
    (segments.div_ceil(W::BITS).max(1), processes.div_ceil(W::BITS))
}

/// In all: columns of processes, the planes of two counts, and rows of segments.
fn size<W: Words>(processes: usize, segments: usize) -> usize {
    let (down, along) = chunks::<W>(processes, segments);
    down * (processes + kept(processes)) + along * segments
}

fn fits_words(processes: usize, segments: usize) -> bool {
    processes.max(segments) <= u64::BITS as usize
}

pub(super) fn bytes(processes: usize, segments: usize) -> usize {
    match fits_words(processes, segments) {
        true => size_of::<u64>() * size::<u64>(processes, segments),
        false => size_of::<Wide>() * size::<Wide>(processes, segments),
    }
}

pub(super) fn schedule(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    if fits_words(instance.processes(), instance.segments() as usize) {
        return by::<u64, Fixed<1>>(instance, each);
    }
    #[cfg(target_arch = "x86_64")]
    if lanes::is_here() {
        // SAFETY: it was asked.
        return unsafe { lanes::schedule(instance, each) };
    }
    portable(instance, each);
}

pub(super) fn portable(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    by::<Wide, Many>(instance, each);
}

#[inline(always)]
fn by<W: Words, S: Shape>(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    let (p, n) = (instance.processes(), instance.segments() as usize);
    let mut window = Window::new(instance);
    let (mut memory, mut counts) = (vec![W::ZERO; size::<W>(p, n)], vec![0; n]);
    let mut state = State::<W, S>::new(&mut memory, &mut counts, p);
    let mut order: Vec<u32> = Vec::with_capacity(p);
    let mut done = vec![Done::default(); p];
    while window.advance() {
        for &place in &window.joined {
            state.join(place as usize);
        }
        // Who takes part stays the same in most rounds.
        if order.is_empty() || !window.joined.is_empty() {
            order.clear();
            window.receivers().for_each(|place| order.push(place as u32));
        }
        state.begin();
        let (count, overwrites) = state.serve(&order, window.head, &mut done);
        let done = &done[..count];
        for (nth, one) in done.iter().enumerate() {
            state.end(one, nth == 0 && overwrites);
        }
        for (nth, &Done { sender, receiver, segment }) in done.iter().enumerate() {
            let (sender, receiver) = (sender as usize, receiver as usize);
            each(window.transfer(sender, receiver, segment as usize, nth == 0 && overwrites));
        }
        for one in done {
            if state.complete(one.sender as usize) {
                window.complete(one.sender as usize);
                order.clear();
            }
        }
    }
}

/// A transfer, between places.
#[derive(Clone, Copy, Default)]
struct Done {
    sender: u32,
    receiver: u32,
    segment: u32,
}

/// Memory is borrowed: of a value that has nothing to free the compiler keeps the parts in registers.
struct State<'a, W: Words, S: Shape> {
    /// What processes hold, by process and by segment. In a round what has come in it is left out, and rows still
    /// have the senders, who are not free.
    columns: Table<'a, W, S>,
    rows: Table<'a, W, S>,
    holders: Holders<'a, W>,
    able: Able<'a, W, S>,
    members: S::Of<W>,
    /// Members that have not sent in this round.
    free: S::Of<W>,
}

impl<'a, W: Words, S: Shape> State<'a, W, S> {
    #[inline(always)]
    fn new(memory: &'a mut [W], counts: &'a mut [u32], p: usize) -> Self {
        let n = counts.len();
        let (down, along) = chunks::<W>(p, n);
        let (columns, rest) = memory.split_at_mut(p * down);
        let (rows, rest) = rest.split_at_mut(n * along);
        let (planes, high) = rest.split_at_mut(planes(p) * down);
        State {
            columns: Table::new(columns, down, n),
            rows: Table::new(rows, along, p),
            holders: Holders::new(planes, counts, down),
            able: Able::new(high, down),
            members: S::of(W::ZERO, along),
            free: S::of(W::ZERO, along),
        }
    }

    #[inline(always)]
    fn join(&mut self, place: usize) {
        self.holders.join();
        let (at, bit) = S::at::<W>(place);
        self.members[at] = self.members[at].or(W::unit(bit));
    }

    #[inline(always)]
    fn begin(&mut self) {
        for at in self.columns.each() {
            self.able.begin(at, &self.holders);
        }
        for at in self.rows.each() {
            self.free[at] = self.members[at];
        }
    }

    /// Serves all in their order, the sink first. How many received, and whether the sink did without holding the
    /// segment.
    #[inline(always)]
    fn serve(&mut self, order: &[u32], head: usize, done: &mut [Done]) -> (usize, bool) {
        let mut group = Group::ZERO;
        let mut receiver = order[0] as usize;
        let column = self.columns.line(receiver);
        let mut found = wanted_by_sink(column, &self.able);
        let overwrites = found.is_some_and(|segment| !W::has(column, segment));
        let mut is_free = true;
        // Whether it is one of those who could send what it receives.
        let mut counts = !overwrites;
        let mut count = 0;
        for nth in 1..=order.len() {
            let next = if nth < order.len() { order[nth] as usize } else { receiver };
            let (at, bit) = S::at::<W>(next);
            let mut next_is_free = !self.free[at].and(W::unit(bit)).is_zero();
            if let Some(segment) = found {
                let sender = self.send(receiver, segment, head, (is_free, counts), &mut group);
                let (from, to, which) = (sender as u32, receiver as u32, segment as u32);
                done[count] = Done { sender: from, receiver: to, segment: which };
                count += 1;
                if count % TIMES == 0 {
                    for at in self.columns.each() {
                        self.able.settle(at);
                    }
                }
                next_is_free &= sender != next;
            }
            let column = self.columns.line(next);
            found = wanted(column, &self.able, next_is_free, &mut group);
            (receiver, is_free, counts) = (next, next_is_free, next_is_free);
        }
        (count, overwrites)
    }

    /// Has a segment sent to a process, which is free or not, and counts as one who can send it or not: who sends it.
    #[inline(always)]
    fn send(
        &mut self,
        receiver: usize,
        segment: usize,
        head: usize,
        (is_free, counts): (bool, bool),
        group: &mut Group<W>,
    ) -> usize {
        let (chunk, bit) = S::at::<W>(segment);
        let unit = W::unit(bit);
        let own = &mut self.columns.line_mut(receiver)[chunk];
        *own = own.and_not(unit);
        // It is taken from the free, which are at hand before the row is.
        let (at, bit) = S::at::<W>(receiver);
        let own = W::unit(bit);
        self.free[at] = self.free[at].and_not(own);
        let row = self.rows.line_mut(segment);
        let sender = sender::<W, S>(row, &self.free, head, group);
        row[at] = row[at].and_not(own);
        self.free[at] = self.free[at].or(own.and(W::all(is_free)));
        let (at, bit) = S::at::<W>(sender);
        self.free[at] = self.free[at].and_not(W::unit(bit));
        // The sender can send nothing more, the receiver not what it has just got.
        let sent = self.columns.line_mut(sender);
        for at in S::each(sent.len()) {
            let received = W::all(counts & (S::ONE || at == chunk)).and(unit);
            self.able.take(at, sent[at], received);
        }
        sent[chunk] = sent[chunk].and_not(unit);
        sender
    }

    /// After the round the receiver holds the segment, and the row loses the sender. Single words are changed: most
    /// are not loaded soon.
    #[inline(always)]
    fn end(&mut self, done: &Done, overwrites: bool) {
        let (sender, receiver) = (done.sender as usize, done.receiver as usize);
        let segment = done.segment as usize;
        if !overwrites {
            self.holders.leave(segment);
        }
        W::flip(self.columns.line_mut(receiver), segment);
        let row = self.rows.line_mut(segment);
        W::flip(row, sender);
        W::flip(row, receiver);
    }

    /// Whether a process holds nothing any more; it is a member no more then.
    #[inline(always)]
    fn complete(&mut self, place: usize) -> bool {
        // Low segments are the first to go.
        let column = self.columns.line(place);
        let is_complete = column.iter().rev().all(|chunk| chunk.is_zero());
        if is_complete {
            let (at, bit) = S::at::<W>(place);
            self.members[at] = self.members[at].and_not(W::unit(bit));
        }
        is_complete
    }
}
