//! The schedule without a tree: for all segments at once it is counted who may send them.
//!
//! Of every segment it is known by how many it can be sent. The counts lie across: a *plane* has one bit of all of
//! them, so that what a sender holds is taken off all counts by some operations on whole columns, and "by anybody",
//! "by two or more" are unions of planes. With these a receiver finds its segment as the first bit of a column, and
//! the sender as the first bit of the segment's row of processes from the head on.
//!
//! Columns and rows are arrays of words whose length the compiler knows, as far as they are short.

use std::cmp::Ordering;

use super::window::Window;
use super::{Instance, Transfer};

/// Words that are worked on together, as registers hold them.
///
/// They are changed as a whole only: a word that was just stored alone cannot be loaded with the others before it is
/// in the cache, which takes longer than all the rest.
trait Words: Copy {
    /// Of these words.
    const BITS: usize;
    const ZERO: Self;
    /// One bit.
    fn unit(bit: usize) -> Self;
    /// The bits from this one on.
    fn from(bit: usize) -> Self;
    fn and(self, other: Self) -> Self;
    fn and_not(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Whether a bit is set.
    fn has(&self, bit: usize) -> bool;
    /// Its first bit.
    fn first(self) -> Option<usize>;
}

impl Words for u64 {
    const BITS: usize = 64;
    const ZERO: Self = 0;
    #[inline(always)]
    fn unit(bit: usize) -> Self {
        1 << bit
    }
    #[inline(always)]
    fn from(bit: usize) -> Self {
        u64::MAX << bit
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        self & !other
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn has(&self, bit: usize) -> bool {
        self >> bit & 1 == 1
    }
    #[inline(always)]
    fn first(self) -> Option<usize> {
        (self != 0).then(|| self.trailing_zeros() as usize)
    }
}

/// Some words, on any processor.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Wide([u64; 8]);

impl Wide {
    #[inline(always)]
    fn each(f: impl Fn(usize) -> u64) -> Self {
        Wide(std::array::from_fn(f))
    }
}

impl Words for Wide {
    const BITS: usize = 512;
    const ZERO: Self = Wide([0; 8]);
    #[inline(always)]
    fn unit(bit: usize) -> Self {
        Self::each(|i| if i == bit / 64 { 1 << (bit % 64) } else { 0 })
    }
    #[inline(always)]
    fn from(bit: usize) -> Self {
        Self::each(|i| match i.cmp(&(bit / 64)) {
            Ordering::Less => 0,
            Ordering::Equal => u64::MAX << (bit % 64),
            Ordering::Greater => u64::MAX,
        })
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self::each(|i| self.0[i] & other.0[i])
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        Self::each(|i| self.0[i] & !other.0[i])
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self::each(|i| self.0[i] | other.0[i])
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self::each(|i| self.0[i] ^ other.0[i])
    }
    #[inline(always)]
    fn has(&self, bit: usize) -> bool {
        self.0[bit / 64 % 8] >> (bit % 64) & 1 == 1
    }
    #[inline(always)]
    fn first(self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }
}

/// As many in one register of AVX-512.
#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::*;

    use super::*;

    /// Nobody has one but [`schedule`], which runs only where [`is_here`] says so.
    #[derive(Clone, Copy)]
    struct Lanes(__m512i);

    /// Whether the processor has all that `schedule` is compiled for.
    pub(super) fn is_here() -> bool {
        std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
            && std::is_x86_feature_detected!("popcnt")
    }

    /// # Safety
    /// [`is_here`] has said yes.
    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn schedule(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
        match instance.processes().max(instance.segments() as usize) {
            ..=512 => by::<Lanes, true>(instance, each),
            _ => by::<Lanes, false>(instance, each),
        }
    }

    impl Words for Lanes {
        const BITS: usize = 512;
        // SAFETY: all zeros are a value of it.
        const ZERO: Self = Lanes(unsafe { std::mem::zeroed() });
        #[inline(always)]
        fn unit(bit: usize) -> Self {
            // SAFETY: of this and all below: the processor has the instruction, for `schedule` alone has this type.
            Lanes(unsafe { _mm512_maskz_set1_epi64(1 << (bit / 64), 1 << (bit % 64)) })
        }
        #[inline(always)]
        fn from(bit: usize) -> Self {
            // SAFETY: as for `unit`.
            unsafe {
                let here = _mm512_maskz_set1_epi64(1 << (bit / 64), -1 << (bit % 64));
                Lanes(_mm512_mask_set1_epi64(here, (0xfe << (bit / 64)) as u8, -1))
            }
        }
        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: as for `unit`.
            Lanes(unsafe { _mm512_and_si512(self.0, other.0) })
        }
        #[inline(always)]
        fn and_not(self, other: Self) -> Self {
            // SAFETY: as for `unit`.
            Lanes(unsafe { _mm512_andnot_si512(other.0, self.0) })
        }
        #[inline(always)]
        fn or(self, other: Self) -> Self {
            // SAFETY: as for `unit`.
            Lanes(unsafe { _mm512_or_si512(self.0, other.0) })
        }
        #[inline(always)]
        fn xor(self, other: Self) -> Self {
            // SAFETY: as for `unit`.
            Lanes(unsafe { _mm512_xor_si512(self.0, other.0) })
        }
        #[inline(always)]
        fn has(&self, bit: usize) -> bool {
            // SAFETY: as for `unit`.
            unsafe { _mm512_test_epi64_mask(self.0, Self::unit(bit).0) != 0 }
        }
        #[inline(always)]
        fn first(self) -> Option<usize> {
            // SAFETY: as for `unit`.
            unsafe {
                let filled = _mm512_test_epi64_mask(self.0, self.0);
                if filled == 0 {
                    return None;
                }
                let lowest = _mm512_castsi512_si128(_mm512_maskz_compress_epi64(filled, self.0));
                let word = _mm_cvtsi128_si64(lowest) as u64;
                Some(64 * filled.trailing_zeros() as usize + word.trailing_zeros() as usize)
            }
        }
    }
}

#[inline(always)]
fn has<W: Words>(row: &[W], bit: usize) -> bool {
    row[bit / W::BITS].has(bit % W::BITS)
}

#[inline(always)]
fn set<W: Words>(row: &mut [W], bit: usize) {
    let at = &mut row[bit / W::BITS];
    *at = at.or(W::unit(bit % W::BITS));
}

#[inline(always)]
fn clear<W: Words>(row: &mut [W], bit: usize) {
    let at = &mut row[bit / W::BITS];
    *at = at.and_not(W::unit(bit % W::BITS));
}

/// Numbers of segments, a chunk of them after the other: bit k of all that are in a chunk is its plane k.
struct Counts<W> {
    planes: Vec<W>,
    /// Bits of a number.
    bits: usize,
}

impl<W: Words> Counts<W> {
    fn new(chunks: usize, most: usize) -> Self {
        let bits = (usize::BITS - most.leading_zeros()) as usize;
        Counts { planes: vec![W::ZERO; chunks * bits], bits }
    }

    #[inline(always)]
    fn of(&mut self, chunk: usize) -> &mut [W] {
        &mut self.planes[chunk * self.bits..][..self.bits]
    }

    /// One more of each of these.
    #[inline(always)]
    fn add(&mut self, chunk: usize, mut carry: W) {
        for plane in self.of(chunk) {
            (*plane, carry) = (plane.xor(carry), plane.and(carry));
        }
    }
}

/// Of the numbers of a chunk, lowest plane first: one less of each of `ones`, two less of each of `twos`; what is left
/// by one at least, and by two.
#[inline(always)]
fn take<W: Words>(planes: &mut [W], ones: W, twos: W) -> (W, W) {
    let Some((lowest, others)) = planes.split_first_mut() else { return (W::ZERO, W::ZERO) };
    let old = *lowest;
    *lowest = old.xor(ones);
    let mut borrow = ones.and_not(old).or(twos);
    let mut higher = W::ZERO;
    for plane in others {
        let old = *plane;
        *plane = old.xor(borrow);
        borrow = borrow.and_not(old);
        higher = higher.or(*plane);
    }
    (lowest.or(higher), higher)
}

/// Columns of processes and rows of segments, the planes of two counts, three columns and a row more.
pub(super) fn bytes(processes: usize, segments: usize) -> usize {
    let bits = if processes.max(segments) <= u64::BITS as usize { u64::BITS } else { 512 } as usize;
    let (down, along) = (segments.div_ceil(bits), processes.div_ceil(bits));
    let planes = 2 * (usize::BITS - processes.leading_zeros()) as usize;
    bits / 8 * (down * (processes + planes + 3) + along * (segments + 1))
}

pub(super) fn schedule(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    match instance.processes().max(instance.segments() as usize) {
        ..=64 => by::<u64, true>(instance, each),
        _ => wide(instance, each),
    }
}

fn wide(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    #[cfg(target_arch = "x86_64")]
    if lanes::is_here() {
        // SAFETY: it was asked.
        return unsafe { lanes::schedule(instance, each) };
    }
    by::<Wide, false>(instance, each);
}

#[inline(always)]
fn by<W: Words, const ONE: bool>(instance: &Instance, each: &mut dyn FnMut(Transfer)) {
    let (p, n) = (instance.processes(), instance.segments() as usize);
    let (down, along) = if ONE { (1, 1) } else { (n.div_ceil(W::BITS), p.div_ceil(W::BITS)) };
    let mut window = Window::new(instance);
    let mut all = vec![W::ZERO; down];
    (0..n).for_each(|segment| set(&mut all, segment));
    // What processes hold, those of segments that came in this round left out; by process and by segment.
    let mut columns = all.repeat(p);
    let mut rows = vec![W::ZERO; n * along];
    let mut left = vec![n as u32; p];
    // How many members hold a segment, and how many of them can send it in this round.
    let mut holders = Counts::<W>::new(down, p);
    let mut able = Counts::<W>::new(down, p);
    let (mut any, mut two) = (vec![W::ZERO; down], vec![W::ZERO; down]);
    let mut free = vec![W::ZERO; along];
    let mut received: Vec<(u32, u32)> = Vec::with_capacity(p);
    let mut senders: Vec<u32> = Vec::with_capacity(p);
    let mut order: Vec<u32> = Vec::with_capacity(p);
    while window.advance() {
        for &place in &window.joined {
            (0..down).for_each(|chunk| holders.add(chunk, all[chunk]));
            (0..n).for_each(|segment| set(&mut rows[segment * along..][..along], place as usize));
            set(&mut free, place as usize);
        }
        able.planes.copy_from_slice(&holders.planes);
        for chunk in 0..down {
            (any[chunk], two[chunk]) = take(able.of(chunk), W::ZERO, W::ZERO);
        }
        let (head, sink) = (window.head, window.sink());
        order.clear();
        order.extend(window.receivers().map(|place| place as u32));
        let mut found =
            wanted_by_sink(&columns[sink * down..][..down], &any, &two, has(&free, sink));
        for (nth, &receiver) in order.iter().enumerate() {
            let receiver = receiver as usize;
            let next = order.get(nth + 1).map_or(receiver, |&next| next as usize);
            let next_column = next * down;
            let Some((segment, held)) = found else {
                let others = if has(&free, next) { &two } else { &any };
                found = wanted(&columns[next_column..][..down], others);
                continue;
            };
            let is_free = has(&free, receiver);
            let column = receiver * down;
            // What the next one takes is looked for while it is not known yet what this one leaves: less, but for
            // a sender.
            let others = if has(&free, next) { &two } else { &any };
            let early = wanted(&columns[next_column..][..down], others);
            let row = &mut rows[segment * along..][..along];
            clear(row, receiver);
            let sender = first(row, &free, head);
            clear(row, sender);
            clear(&mut free, sender);
            let (chunk, unit) = (segment / W::BITS, W::unit(segment % W::BITS));
            let overwrites = !held.has(segment % W::BITS);
            each(window.transfer(sender, receiver, segment, overwrites));
            columns[column + chunk] = held.and_not(unit);
            // The sender can send nothing more, the receiver not what it has just got.
            let twice = if is_free && !overwrites { unit } else { W::ZERO };
            let sent = &mut columns[sender * down..][..down];
            for at in 0..down {
                let twice = if at == chunk { twice } else { W::ZERO };
                (any[at], two[at]) = take(able.of(at), sent[at].and_not(twice), twice);
            }
            sent[chunk] = sent[chunk].and_not(unit);
            left[sender] -= 1;
            if overwrites {
                left[receiver] += 1;
            } else {
                take(holders.of(chunk), unit, W::ZERO);
            }
            received.push((receiver as u32, segment as u32));
            senders.push(sender as u32);
            if senders.len() == order.len() {
                break;
            }
            let others = if has(&free, next) { &two } else { &any };
            let holds = match early {
                Some((segment, _)) => others[segment / W::BITS].has(segment % W::BITS),
                None => true,
            };
            found = if sender != next && holds {
                early
            } else {
                wanted(&columns[next_column..][..down], others)
            };
        }
        for (place, segment) in received.drain(..) {
            set(&mut columns[place as usize * down..][..down], segment as usize);
            set(&mut rows[segment as usize * along..][..along], place as usize);
        }
        for place in senders.drain(..) {
            set(&mut free, place as usize);
            if left[place as usize] == 0 {
                clear(&mut free, place as usize);
                window.complete(place as usize);
            }
        }
    }
}

/// The first segment of a column that others can send, and that chunk of the column.
#[inline(always)]
fn wanted<W: Words>(column: &[W], others: &[W]) -> Option<(usize, W)> {
    for chunk in 0..column.len() {
        if let Some(bit) = column[chunk].and(others[chunk]).first() {
            return Some((W::BITS * chunk + bit, column[chunk]));
        }
    }
    None
}

/// The same for the sink, which takes what it does not hold, too.
#[inline(always)]
fn wanted_by_sink<W: Words>(
    column: &[W],
    any: &[W],
    two: &[W],
    is_free: bool,
) -> Option<(usize, W)> {
    for chunk in 0..column.len() {
        let held = column[chunk];
        let all = if is_free { two[chunk].or(any[chunk].and_not(held)) } else { any[chunk] };
        if let Some(bit) = all.first() {
            return Some((W::BITS * chunk + bit, held));
        }
    }
    None
}

/// The first that is in both, from the head on and round the circle. There is one.
#[inline(always)]
fn first<W: Words>(row: &[W], free: &[W], head: usize) -> usize {
    let (chunks, first) = (row.len(), head / W::BITS);
    let behind = W::from(head % W::BITS);
    let here = row[first].and(free[first]);
    if let Some(bit) = here.and(behind).first() {
        return W::BITS * first + bit;
    }
    let mut chunk = first;
    for _ in 1..chunks {
        chunk = if chunk + 1 < chunks { chunk + 1 } else { 0 };
        if let Some(bit) = row[chunk].and(free[chunk]).first() {
            return W::BITS * chunk + bit;
        }
    }
    W::BITS * first + here.first().unwrap_or(0)
}
