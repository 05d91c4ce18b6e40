//! The patterns that break naive implementations, as relations between places of memory.

use lpf::measure::Random;
use lpf::measure::superstep::{Areas, Pattern};
use lpf::{Context, Lpf, Pid, Result};
use serde::{Deserialize, Serialize};

/// Who sends what where. Words are counted per process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Shape {
    /// Every process to one cache line of process 0.
    OneLine,
    /// Every other process `n` words to process 0.
    HotSpotIn(usize),
    /// Process 0 `n` words to every other.
    HotSpotOut(usize),
    /// Every process `n` words to every process, where they all overlap, and each overlaps its
    /// neighbour by half.
    Overlapping(usize),
    /// `n` words from every process, to processes and from and to places drawn at random.
    Random(usize),
    /// Every process `n` words to itself.
    Oneself(usize),
    /// A total exchange of `n` words per pair in which the last process has no part.
    OneIdle(usize),
    /// A total exchange of `n` words per pair.
    Everybody(usize),
}

/// How the words travel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Way {
    Put,
    /// The same relation turned round: who would receive sends.
    Get,
    /// In turns.
    Mixed,
}

/// A pattern of `lpf comply`: the words of a shape, each moved by a request of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Relation {
    pub(super) p: Pid,
    pub(super) word: usize,
    pub(super) shape: Shape,
    pub(super) way: Way,
}

/// A word: the other process, its place here and its place there, bytes.
type Word = (Pid, usize, usize);

impl Relation {
    /// Calls `each` for every word that process `own` has to do with as the one who asks.
    #[inline]
    fn words<E>(
        &self,
        own: Pid,
        mut each: impl FnMut(Word) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (p, w) = (self.p, self.word);
        // Block k of n words.
        let block = |k: Pid, n: usize, i: usize| w * (k * n + i);
        match self.shape {
            Shape::OneLine => each((0, 0, w * (own % (64 / w).max(1)))),
            Shape::HotSpotIn(n) => {
                let asks = own > 0 || p == 1;
                (0..if asks { n } else { 0 })
                    .try_for_each(|i| each((0, block(0, n, i), block(own, n, i))))
            }
            Shape::HotSpotOut(n) => {
                let first = if p == 1 { 0 } else { 1 };
                let others = if own == 0 { first..p } else { 0..0 };
                self.round_robin(others, n, |to, i| each((to, block(to, n, i), block(0, n, i))))
            }
            Shape::Overlapping(n) => {
                self.round_robin(0..p, n, |to, i| each((to, block(0, n, i), w * i / 2)))
            }
            Shape::Random(n) => {
                let mut random = Random::new(own as u64);
                (0..n).try_for_each(|_| {
                    let to = random.below(p);
                    each((to, w * random.below(n), w * random.below(n)))
                })
            }
            Shape::Oneself(n) => (0..n).try_for_each(|i| each((own, w * i, w * i))),
            Shape::OneIdle(n) => {
                let active = if own < p - 1 { 0..p - 1 } else { 0..0 };
                self.round_robin(active, n, |to, i| each((to, block(to, n, i), block(own, n, i))))
            }
            Shape::Everybody(n) => {
                self.round_robin(0..p, n, |to, i| each((to, block(to, n, i), block(own, n, i))))
            }
        }
    }

    /// Word 0 to all, word 1 to all, …
    #[inline]
    fn round_robin<E>(
        &self,
        others: std::ops::Range<Pid>,
        n: usize,
        mut each: impl FnMut(Pid, usize) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        (0..n).try_for_each(|i| others.clone().try_for_each(|to| each(to, i)))
    }

    fn by_get(&self, nth: usize) -> bool {
        match self.way {
            Way::Put => false,
            Way::Get => true,
            // One word to or from everybody, then one the other way.
            Way::Mixed => nth / self.p % 2 == 1,
        }
    }

    /// Counts what the relation is: bytes of an area, requests and h, each at the process with
    /// most.
    pub(super) fn census(&self) -> Census {
        let p = self.p;
        let (mut sent, mut received, mut requests) = (vec![0; p], vec![0; p], vec![0; p]);
        let mut bytes = 0;
        for own in 0..self.p {
            let mut nth = 0;
            let counted: std::result::Result<(), ()> = self.words(own, |(other, here, there)| {
                let (from, to) = if self.by_get(nth) { (other, own) } else { (own, other) };
                nth += 1;
                sent[from] += self.word;
                received[to] += self.word;
                requests[own] += 1;
                requests[other] += 1;
                bytes = bytes.max(here.max(there) + self.word);
                Ok(())
            });
            debug_assert!(counted.is_ok());
        }
        let most = |list: &[usize]| list.iter().copied().max().unwrap_or(0);
        Census { bytes, requests: most(&requests), h_bytes: most(&sent).max(most(&received)) }
    }
}

/// What a relation takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Census {
    pub(super) bytes: usize,
    pub(super) requests: usize,
    pub(super) h_bytes: usize,
}

/// A relation that was counted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    relation: Relation,
    census: Census,
}

impl Counted {
    pub(super) fn new(relation: Relation) -> Self {
        Counted { relation, census: relation.census() }
    }
}

impl<L: Lpf> Pattern<L> for Counted {
    fn bytes(&self) -> usize {
        self.census.bytes
    }

    fn requests(&self) -> usize {
        self.census.requests
    }

    fn queue<'s>(&self, ctx: &mut Context<'s, L>, areas: &Areas<'s>, base: usize) -> Result<()> {
        let (relation, word) = (self.relation, self.relation.word);
        let (sources, destinations) = (&areas.sources, &areas.destinations);
        let mut nth = 0;
        relation.words(ctx.pid(), |(other, here, there)| {
            let (here, there) = (base + here, base + there);
            nth += 1;
            if relation.by_get(nth - 1) {
                ctx.get(other, sources, there..there + word, destinations, here)
            } else {
                ctx.put(sources, here..here + word, other, destinations, there)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn h(p: Pid, word: usize, shape: Shape) -> usize {
        Relation { p, word, shape, way: Way::Put }.census().h_bytes
    }

    #[test]
    fn h_is_the_larger_of_what_a_process_sends_and_receives() {
        assert_eq!(h(4, 8, Shape::OneLine), 32);
        assert_eq!(h(4, 8, Shape::HotSpotIn(10)), 3 * 80);
        assert_eq!(h(4, 8, Shape::HotSpotOut(10)), 3 * 80);
        assert_eq!(h(4, 8, Shape::Overlapping(10)), 4 * 80);
        assert_eq!(h(4, 8, Shape::Oneself(10)), 80);
        assert_eq!(h(4, 8, Shape::OneIdle(10)), 3 * 80);
        assert_eq!(h(4, 8, Shape::Everybody(10)), 4 * 80);
        let random = h(4, 8, Shape::Random(1000));
        assert!((8000..10_000).contains(&random), "{random}");
    }

    #[test]
    fn a_get_turns_the_relation_round_and_mixed_shares_it() {
        let shape = Shape::HotSpotIn(10);
        let count = |way| Relation { p: 4, word: 8, shape, way }.census();
        assert_eq!(count(Way::Get).h_bytes, 240, "process 0 sends to the three others");
        assert_eq!(count(Way::Mixed).h_bytes, 3 * 6 * 8, "six of ten words are put");
        assert_eq!(count(Way::Put).requests, 30);
    }

    #[test]
    fn one_process_alone_has_every_pattern_but_that_of_an_idle_one() {
        for shape in [Shape::OneLine, Shape::HotSpotIn(3), Shape::HotSpotOut(3), Shape::Oneself(3)]
        {
            assert!(h(1, 8, shape) > 0, "{shape:?}");
        }
        assert_eq!(h(1, 8, Shape::OneIdle(3)), 0);
    }
}
