//! Which patterns `lpf comply` times, and with which words.

use lpf::Lpf;
use lpf::Pid;
use lpf::host::Host;
use lpf::measure::Word;
use lpf::measure::exchange::TotalExchange;
use lpf::measure::superstep::{Empty, Pattern};
use serde::{Deserialize, Serialize};

use super::relation::{Counted, Relation, Shape, Way};

/// A pattern, before it is tied to a backend.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    /// As `pattern` in the rows: the kind, the word's bytes, and `get` or `mixed` where it is not
    /// all puts.
    pub(super) name: String,
    pub(super) word: usize,
    pub(super) h_bytes: usize,
    moves: Moves,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Moves {
    Nothing,
    Exchange(TotalExchange),
    Relation(Counted),
}

impl Case {
    pub(super) fn pattern<L: Lpf>(&self) -> Box<dyn Pattern<L>> {
        match self.moves {
            Moves::Nothing => Box::new(Empty),
            Moves::Exchange(exchange) => Box::new(exchange),
            Moves::Relation(relation) => Box::new(relation),
        }
    }
}

/// Words of a total exchange.
const EXCHANGED: [usize; 7] = [1, 8, 64, 512, 4096, 32 << 10, 1 << 20];
/// Words whose h goes from 0 to the largest.
const SWEPT: [usize; 3] = [8, 1024, 1 << 20];
/// Factor between one h of a sweep and the next.
const SWEEP_STEP: usize = 16;

/// All patterns for `p` processes of a machine, the largest h-relations of `words` among them.
pub(super) fn all(host: &Host, p: Pid, words: &[Word]) -> Vec<Case> {
    let mut cases = vec![Case { name: "empty".into(), word: 8, h_bytes: 0, moves: Moves::Nothing }];
    for word in EXCHANGED {
        let bytes = word * p * words_per_pair(word);
        let put = TotalExchange::new(p, word, bytes);
        cases.push(exchange("total-exchange", word, put));
        cases.push(exchange("total-exchange-get", word, put.by_get()));
    }
    for &Word { bytes: word, largest, .. } in words.iter().filter(|w| SWEPT.contains(&w.bytes)) {
        let mut bytes = word * p;
        while bytes < largest {
            cases.push(exchange("h-sweep", word, TotalExchange::new(p, word, bytes)));
            bytes *= SWEEP_STEP;
        }
        cases.push(exchange("h-sweep", word, TotalExchange::new(p, word, largest)));
    }
    for word in [8, 4096] {
        let n = words_per_pair(word);
        let shapes = [
            ("hot-spot-in", Shape::HotSpotIn(n)),
            ("hot-spot-out", Shape::HotSpotOut(n)),
            ("overlapping", Shape::Overlapping(n)),
            ("random", Shape::Random(n * p)),
            ("oneself", Shape::Oneself(n)),
            ("one-idle", Shape::OneIdle(n)),
        ];
        // One process alone would be the idle one.
        let is_any = |shape: &Shape| p > 1 || !matches!(shape, Shape::OneIdle(_));
        for (name, shape) in shapes.into_iter().filter(|(_, shape)| is_any(shape)) {
            cases.push(relation(name, p, word, shape, Way::Put));
            cases.push(relation(&format!("{name}-get"), p, word, shape, Way::Get));
        }
        cases.push(relation("mixed", p, word, Shape::Everybody(n), Way::Mixed));
    }
    cases.push(relation("one-line-written-by-all", p, 8, Shape::OneLine, Way::Put));
    cases.push(relation("one-line-read-by-all", p, 8, Shape::OneLine, Way::Get));
    // Sources and destinations of all processes.
    cases.retain(|case| 2 * p * case.h_bytes <= host.memory_bytes / 2);
    cases
}

/// Enough words for g to matter, few enough for many samples.
fn words_per_pair(word: usize) -> usize {
    ((1 << 20) / word).clamp(2, 1024)
}

fn exchange(name: &str, word: usize, exchange: TotalExchange) -> Case {
    let name = format!("{name}-{word}B");
    Case { name, word, h_bytes: exchange.h_bytes(), moves: Moves::Exchange(exchange) }
}

fn relation(name: &str, p: Pid, word: usize, shape: Shape, way: Way) -> Case {
    let relation = Relation { p, word, shape, way };
    let (name, h_bytes) = (format!("{name}-{word}B"), relation.census().h_bytes);
    Case { name, word, h_bytes, moves: Moves::Relation(Counted::new(relation)) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lpf::machine::Growth;
    use lpf::measure::Plan;

    use super::*;

    #[test]
    fn every_row_has_a_name_and_h_of_its_own() {
        let host = Host::this();
        for p in [1, 2, 4, 7] {
            let plan = Plan::for_host(&host, p, Growth::SharedMemory, Duration::ZERO, true);
            let cases = all(&host, p, &plan.words);
            let mut rows: Vec<_> = cases.iter().map(|c| (c.name.clone(), c.h_bytes)).collect();
            rows.sort();
            let before = rows.len();
            rows.dedup();
            assert_eq!(rows.len(), before);
            assert!(before > 40);
            assert!(cases.iter().all(|case| (case.h_bytes > 0) == (case.name != "empty")));
        }
    }
}
