//! Agreements where words come late, never, or again and again.

use super::agreement::{Agreement, Closed, Closer, Gap, KEPT, Word};
use crate::arrival_pattern::Estimates;
use crate::simulate::Random;

/// A register as its writer has it, and what has come of it to a reader: any version from the last one read on.
#[derive(Clone, Default)]
struct Register {
    written: Vec<Word>,
    /// How many of them have come.
    come: usize,
}

impl Register {
    fn write(&mut self, word: Word) {
        self.written.push(word);
    }

    fn read(&mut self, random: &mut Random, keeps_back: bool) -> Option<Word> {
        if !keeps_back && self.come < self.written.len() {
            self.come += random.below((self.written.len() - self.come) as u64 + 1) as usize;
        }
        self.come.checked_sub(1).map(|last| self.written[last])
    }
}

#[derive(Clone, Default)]
struct Member {
    call: u64,
    said: Register,
    asked: Register,
    /// What it has read of each call.
    read: Vec<Agreement>,
}

/// What the closer has told.
#[derive(Default)]
struct Told {
    kept: [Option<Agreement>; KEPT as usize],
    gap: Option<Gap>,
    calls: u64,
}

impl Told {
    fn tell(&mut self, closed: Closed) {
        self.calls += 1;
        match closed {
            Closed::Kept(agreement) => {
                assert_eq!(agreement.call, self.calls);
                let register = (agreement.call % KEPT) as usize;
                self.kept[register] = Some(agreement);
            }
            Closed::Unknown(gap) => {
                assert!(gap.first <= gap.last && gap.last == self.calls, "{gap:?}");
                self.gap = Some(gap);
            }
        }
    }

    /// As a member reads it.
    fn of(&self, call: u64) -> Option<Agreement> {
        let kept = self.kept[(call % KEPT) as usize].clone();
        let unknown = self.gap.is_some_and(|gap| gap.has(call));
        kept.filter(|one| one.call == call)
            .or(unknown.then_some(Agreement { call, arrivals: None }))
    }
}

/// Members that say when they come, or do not, and come at any time; the closer sees their words late, several times,
/// and those of some hardly ever; some comes to no more calls from one on. Each call is agreed on once, everybody reads
/// the same of it, nobody waits for ever, and an agreement is there until all have read it.
#[test]
fn everybody_reads_the_same_of_every_call() {
    let mut random = Random(3);
    let (mut known, mut unknown) = (0, 0);
    for _ in 0..2000 {
        let q = 1 + random.below(6) as usize;
        let silent = random.below(2 * q as u64) as usize;
        let slow = random.below(2 * q as u64) as usize;
        // Who is gone, and from which call on.
        let (gone, last) = (random.below(4 * q as u64) as usize, random.below(9) as usize);
        let mut members = vec![Member::default(); q];
        let mut closer = Closer::default();
        let mut told = Told::default();
        let calls_of = |me: usize| if me == gone { last } else { 12 };
        let mut steps = 0;
        while members.iter().enumerate().any(|(me, member)| member.read.len() < calls_of(me)) {
            steps += 1;
            assert!(steps < 100_000, "somebody waits for ever");
            let me = random.below(q as u64) as usize;
            if me == slow && random.below(30) > 0 {
                continue;
            }
            let member = &mut members[me];
            let is_in_phase = member.call as usize > member.read.len();
            let is_early = random.below(3) == 0;
            let word = Word { call: member.call, arrival_ns: random.below(1 << 20), is_early };
            match random.below(3) {
                _ if member.read.len() == calls_of(me) => {}
                0 if !is_in_phase => member.call += 1,
                // It says when it comes, once or several times.
                1 if is_in_phase && me != silent => member.said.write(word),
                _ if is_in_phase => {
                    let agreement = told.of(member.call);
                    let was_told = told.calls >= member.call;
                    assert_eq!(
                        agreement.is_some(),
                        was_told,
                        "call {} of member {me}",
                        member.call
                    );
                    match agreement {
                        Some(agreement) => member.read.push(agreement),
                        None => member.asked.write(Word { is_early: false, ..word }),
                    }
                }
                _ => {}
            }
            if random.below(2) == 0 {
                let keeps_back = random.below(3) == 0;
                // Asked first, as the helper reads them.
                let mut read = |of: fn(&mut Member) -> &mut Register| -> Vec<Option<Word>> {
                    let all = members.iter_mut();
                    all.map(|member| of(member).read(&mut random, keeps_back)).collect()
                };
                let (asked, said) = (read(|m| &mut m.asked), read(|m| &mut m.said));
                while let Some(closed) = closer.close(&said, &asked) {
                    told.tell(closed);
                }
            }
        }
        let longest = members.iter().map(|member| &member.read).max_by_key(|read| read.len());
        let longest = longest.expect("a member");
        for member in &members {
            assert_eq!(member.read, longest[..member.read.len()]);
        }
        for agreement in longest {
            match &agreement.arrivals {
                Some(arrivals) => {
                    assert_eq!(arrivals.times_ns().len(), q);
                    known += 1;
                }
                None => unknown += 1,
            }
        }
    }
    assert!(known > 1000 && unknown > 1000, "{known} known, {unknown} unknown");
}

#[test]
fn an_agreement_is_closed_when_all_is_known_or_somebody_asks() {
    let word = |call, arrival_ns| Some(Word { call, arrival_ns, is_early: false });
    let early = |call, arrival_ns| Some(Word { call, arrival_ns, is_early: true });
    let kept = |closed: Option<Closed>| match closed {
        Some(Closed::Kept(agreement)) => Some(agreement),
        Some(gap @ Closed::Unknown(_)) => panic!("{gap:?}"),
        None => None,
    };
    let close =
        |said: &[Option<Word>], asked: &[Option<Word>]| kept(Closer::default().close(said, asked));
    assert_eq!(close(&[word(1, 5), None], &[None, None]), None);
    let known = close(&[word(1, 5), word(1, 100_005)], &[None, None]).expect("all have said");
    assert_eq!(known.arrivals.expect("known").times_ns(), [0, 98_304]);
    // Who asks says when it came.
    let known = close(&[word(1, 5), None], &[None, word(1, 70_005)]).expect("all is known");
    assert_eq!(known.arrivals.expect("known").times_ns(), [0, 69_632]);
    // Who will know better is waited for, until somebody asks.
    let both = [word(1, 5), early(1, 100_005)];
    assert_eq!(close(&both, &[None, None]), None);
    let known = close(&both, &[word(1, 6), None]).expect("somebody asks");
    assert_eq!(known.arrivals.expect("known").times_ns(), [0, 98_304]);
    let unknown = close(&[word(1, 5), None], &[word(1, 6), None]).expect("somebody asks");
    assert_eq!(unknown, Agreement { call: 1, arrivals: None });
    // Words of a call before say nothing of this one.
    let mut closer = Closer { next: 2, ..Closer::default() };
    assert_eq!(closer.close(&[word(1, 5), word(2, 5)], &[word(1, 6), None]), None);
    let unknown = kept(closer.close(&[None, None], &[None, word(2, 9)])).expect("somebody asks");
    assert_eq!(unknown, Agreement { call: 2, arrivals: None });
}

#[test]
fn who_is_far_ahead_waits_for_nobody_and_what_others_have_to_read_is_kept() {
    let word = |call| Some(Word { call, arrival_ns: 5, is_early: false });
    let mut closer = Closer::default();
    // Member 1 is in call 2, member 0 comes to call after call.
    for call in 1..=KEPT + 1 {
        let closed = closer.close(&[None, None], &[word(call), word(2)]).expect("asked");
        assert!(matches!(closed, Closed::Kept(one) if one.call == call));
    }
    for call in KEPT + 2..KEPT + 5 {
        let closed = closer.close(&[None, None], &[word(call), word(2)]);
        assert_eq!(closed, Some(Closed::Unknown(Gap { first: KEPT + 2, last: call })));
    }
    // Then member 1 comes to a call that is known of both.
    let both = [word(KEPT + 5), word(KEPT + 5)];
    assert!(
        matches!(closer.close(&both, &both), Some(Closed::Kept(one)) if one.arrivals.is_some())
    );
}

#[test]
fn words_and_agreements_are_read_as_they_were_written() {
    for is_early in [true, false] {
        let word = Word { call: 7, arrival_ns: u64::MAX, is_early };
        assert_eq!(Word::from_bytes(&word.to_bytes()), Some(word));
    }
    let gap = Gap { first: 3, last: 8 };
    assert_eq!(Gap::from_bytes(&gap.to_bytes()), Some(gap));
    assert_eq!(Gap::from_bytes(&[0; 8]), None);
    assert_eq!(Word::from_bytes(&[1, 2, 3]), None);
    for arrivals in [None, Some(Estimates::new(&[10, 500, 20], 4))] {
        let agreement = Agreement { call: 9, arrivals };
        assert_eq!(Agreement::from_bytes(&agreement.to_bytes()), Some(agreement));
    }
    assert_eq!(Agreement::from_bytes(&[]), None);
    assert_eq!(Agreement::from_bytes(&[0; 9]), None);
}
