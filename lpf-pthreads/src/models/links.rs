//! The pair counters of links: cells under a window, credits, offers and their revocation.

use lpf_core::arrivals::{Expect, InboxShape, InboxSlot, Link, Travel};
use lpf_core::runtime::{Tables, progress};
use lpf_core::slot::Registrant;
use lpf_core::{Awaited, Cause, Error, GlobalSlot, Links, Lpf, Pid, Runtime, Slot};

use super::explore;
use super::section::{run, section};
use crate::barrier::Shape;
use crate::links::ring::{Bytes, bytes};
use crate::sync::yield_now;
use crate::threads::{self, Threads};

/// What one of two processes has: a link with the other, and a slot of words to send.
struct End {
    link: Link,
    slot: Slot,
}

const WORDS: [u64; 8] = [10, 11, 12, 13, 14, 15, 16, 17];
const WORD: usize = size_of::<u64>();

/// Explores two processes with a link of `window` cells each way.
fn between_two(
    window: u32,
    preemptions: usize,
    process: impl Fn(&mut Threads, &End) + Clone + Send + Sync + 'static,
) {
    among(2, window, preemptions, move |threads| {
        let link = open(threads, 1 - threads.pid());
        let end = End { link, slot: register(threads) };
        process(threads, &end);
    });
}

/// Explores `procs` processes with an inbox of one ring.
fn among(
    procs: Pid,
    window: u32,
    preemptions: usize,
    process: impl Fn(&mut Threads) + Clone + Send + Sync + 'static,
) {
    explore(preemptions, move || {
        let comm = section(procs, &Shape::flat(), None);
        let shape = InboxShape { rings: 1, window, cell_bytes: 32 };
        // What the full sync that activates inboxes would do.
        for pid in 0..procs {
            let mut outer = threads::process(comm.clone(), pid, 1).unwrap();
            outer.register_inbox(shape).unwrap();
        }
        let process = process.clone();
        run(&comm, move |threads| {
            let Tables { local, links } = threads.parts().0;
            links.add_inbox(local, shape);
            links.activate();
            process(threads);
        });
    });
}

/// Opens the link with `peer` in the one ring of the inbox.
fn open(threads: &mut Threads, peer: Pid) -> Link {
    threads.open(InboxSlot::new(0), 0, peer, 0).unwrap()
}

fn register(threads: &mut Threads) -> Slot {
    threads.parts().0.local.slots.reserve(4, 0).unwrap();
    threads.parts().0.local.slots.set_capacity(4, 0);
    register_at(threads, WORDS.as_ptr().cast_mut().cast(), size_of_val(&WORDS))
}

fn register_at(threads: &mut Threads, place: *mut u8, bytes: usize) -> Slot {
    let slots = &mut threads.parts().0.local.slots;
    slots.register_local(place, bytes, Registrant::Caller, 0).unwrap().into()
}

/// One look of a wait: progress, and whether the awaited is there. Unlike a poll it reports releases only where it is
/// time.
fn look(process: &mut Threads, awaited: Awaited<'_>) -> lpf_core::Result<bool> {
    let (tables, engine) = process.parts();
    let Tables { local, links } = tables;
    let looked = progress::look(&mut engine.links(), local, links, awaited, None);
    looked.map_err(|error| process.fail(error))
}

impl End {
    /// Puts word `nth` as the next message.
    fn put(&self, process: &mut Threads, nth: usize, travel: Travel) {
        process.send(self.link, self.slot, nth * WORD, WORD, travel).unwrap();
    }

    fn wait(&self, process: &mut Threads, awaited: Awaited<'_>) {
        while !look(process, awaited).unwrap() {
            yield_now();
        }
    }

    /// Waits for `messages` more and gives the words that came.
    fn expect(&self, process: &mut Threads, messages: u32) -> Vec<u64> {
        let expected = [Expect { link: self.link, messages }];
        process.expect(&expected).unwrap();
        self.wait(process, Awaited::Messages(&expected));
        self.words(process, messages)
    }

    /// The words of the `messages` messages that came last.
    fn words(&self, process: &mut Threads, messages: u32) -> Vec<u64> {
        let end = process.awaited(self.link).unwrap();
        let word = |nth| {
            let arrival = process.arrival(self.link, nth).unwrap();
            assert_eq!(arrival.bytes, WORD);
            if arrival.landed {
                // SAFETY: models offer nothing but Bytes.
                let area = unsafe { &*arrival.data.cast::<Bytes>() };
                // SAFETY: it holds a word, unaligned.
                area.with(|bytes| unsafe { bytes.cast::<u64>().read_unaligned() })
            } else {
                // SAFETY: the message is awaited and not released.
                unsafe { arrival.data.cast::<u64>().read_unaligned() }
            }
        };
        (end - u64::from(messages)..end).map(word).collect()
    }

    fn flush(&self, process: &mut Threads) {
        process.expect(&[]).unwrap();
        self.wait(process, Awaited::Flushed);
    }

    /// Waits for one message more, in a section that may fail before: whether it came.
    fn awaits_one(&self, process: &mut Threads) -> bool {
        let expected = [Expect::one(self.link)];
        if process.expect(&expected).is_err() {
            return false;
        }
        loop {
            match look(process, Awaited::Messages(&expected)) {
                Ok(true) => return true,
                Ok(false) => yield_now(),
                Err(_) => return false,
            }
        }
    }

    /// Process 0 goes on when process 1 is here, too: else it has mostly ended before process 1 opens the link, and
    /// nothing was sent that could be revoked. False if the section has failed.
    fn let_both_begin(&self, process: &mut Threads) -> bool {
        if process.pid() == 0 {
            return self.awaits_one(process);
        }
        self.put(process, 0, Travel::Cell);
        self.flush(process);
        true
    }
}

/// One sends more messages than the window has cells, the other receives them one by one.
fn one_way(window: u32, messages: usize, preemptions: usize) {
    between_two(window, preemptions, move |process, end| {
        for (nth, &word) in WORDS[..messages].iter().enumerate() {
            if process.pid() == 0 {
                if nth == 2 * window as usize {
                    // No more than two windows may wait.
                    end.flush(process);
                }
                end.put(process, nth, Travel::Cell);
                process.expect(&[]).unwrap();
            } else {
                assert_eq!(end.expect(process, 1), [word]);
            }
        }
        end.flush(process);
    });
}

#[test]
fn messages_through_one_cell() {
    one_way(1, 3, 4);
}

#[test]
fn messages_through_two_cells() {
    one_way(2, 4, 3);
}

/// Both put whole windows to each other, again and again: who waits for credit has to report.
fn both_ways(window: u32, rounds: usize, preemptions: usize) {
    between_two(window, preemptions, move |process, end| {
        for round in 0..rounds {
            let words = round * window as usize..(round + 1) * window as usize;
            words.clone().for_each(|nth| end.put(process, nth, Travel::Cell));
            assert_eq!(end.expect(process, window), WORDS[words]);
        }
        end.flush(process);
    });
}

#[test]
fn whole_windows_of_one_cross() {
    both_ways(1, 3, 3);
}

#[test]
fn whole_windows_of_two_cross() {
    both_ways(2, 2, 3);
}

/// Both have a window under way and flush one more. Each has released one message, too little to be
/// reported by itself, and the other waits for just that.
#[test]
fn who_waits_for_credit_reports() {
    between_two(4, 1, |process, end| {
        (0..4).for_each(|nth| end.put(process, nth, Travel::Cell));
        assert_eq!(end.expect(process, 1), [WORDS[0]]);
        end.put(process, 4, Travel::Cell);
        end.flush(process);
        assert_eq!(end.expect(process, 4), WORDS[1..5]);
    });
}

/// What one has released it says with a message that the other has not awaited, and nowhere else: the other
/// needs just that credit to send on.
#[test]
fn credit_rides_on_messages_that_nobody_awaits_yet() {
    between_two(1, 3, |process, end| {
        if process.pid() == 0 {
            end.put(process, 0, Travel::Cell);
            end.flush(process);
            end.put(process, 1, Travel::Cell);
            end.flush(process);
            assert_eq!(end.expect(process, 1), [WORDS[2]]);
        } else {
            assert_eq!(end.expect(process, 1), [WORDS[0]]);
            process.expect(&[]).unwrap();
            end.put(process, 2, Travel::Cell);
            assert_eq!(end.expect(process, 1), [WORDS[1]]);
            end.flush(process);
        }
    });
}

/// A landing goes straight into the area offered for it, and the place of the offer is used again.
fn landings(messages: usize, preemptions: usize) {
    between_two(1, preemptions, move |process, end| {
        let areas: Vec<_> = (0..messages).map(|_| bytes()).collect();
        for (nth, area) in areas.iter().enumerate() {
            if process.pid() == 0 {
                end.put(process, nth, Travel::Landing);
                process.expect(&[]).unwrap();
            } else {
                let place = std::ptr::from_ref(area).cast_mut().cast();
                let slot = register_at(process, place, WORD);
                process.offer(end.link, slot, 0, WORD).unwrap();
                assert_eq!(end.expect(process, 1), [WORDS[nth]]);
                // SAFETY: the area is this process's again.
                area.with_mut(|bytes| unsafe { (*bytes)[0] = 0 });
            }
        }
        end.flush(process);
    });
}

#[test]
fn a_landing_arrives() {
    landings(1, 3);
}

#[test]
fn a_place_of_offers_is_used_again() {
    landings(2, 3);
}

/// The owner of an offer fails while the sender may be copying: it gets its memory back only when
/// nobody writes to it.
#[test]
fn an_offer_is_revoked_or_its_copy_awaited() {
    between_two(1, 3, |process, end| {
        if process.pid() == 0 {
            if end.let_both_begin(process) {
                // The section may have failed before or after.
                let _ = process.send(end.link, end.slot, 0, WORD, Travel::Landing);
                let _ = look(process, Awaited::Flushed);
            }
            return;
        }
        let area = bytes();
        let place = std::ptr::from_ref(&area).cast_mut().cast();
        let slot = register_at(process, place, WORD);
        process.offer(end.link, slot, 0, WORD).unwrap();
        end.let_both_begin(process);
        let cause = Cause::Panicked { message: String::new() };
        process.fail(Error::fatal(1, 0, cause));
        // SAFETY: the area is this process's own.
        area.with_mut(|bytes| unsafe { (*bytes)[0] = 0 });
    });
}

/// Lends a word of `area` as the next message.
fn lend(process: &mut Threads, end: &End, area: &Bytes) -> lpf_core::Result<()> {
    // SAFETY: nobody else has the area yet.
    area.with_mut(|bytes| unsafe { bytes.cast::<u64>().write_unaligned(WORDS[1]) });
    let place = std::ptr::from_ref(area).cast_mut().cast();
    let slot = register_at(process, place, WORD);
    process.send(end.link, slot, 0, WORD, Travel::Parts(WORD))
}

/// Reads the word of the message awaited last, which is lent.
fn read_lent(process: &Threads, end: &End) -> u64 {
    let nth = process.awaited(end.link).unwrap() - 1;
    let arrival = process.arrival(end.link, nth).unwrap();
    // SAFETY: models lend nothing but Bytes.
    let area = unsafe { &*arrival.data.cast::<Bytes>() };
    // SAFETY: it holds a word, unaligned.
    area.with(|bytes| unsafe { bytes.cast::<u64>().read_unaligned() })
}

/// What was read in the sender's memory is the sender's again after its flush, and its cell is used again.
#[test]
fn what_is_lent_comes_back() {
    between_two(1, 2, |process, end| {
        if process.pid() == 0 {
            let area = bytes();
            lend(process, end, &area).unwrap();
            end.flush(process);
            // SAFETY: the area is this process's again.
            area.with_mut(|bytes| unsafe { (*bytes)[0] = 0 });
            end.put(process, 2, Travel::Cell);
            process.expect(&[]).unwrap();
            end.flush(process);
        } else {
            let expected = [Expect::one(end.link)];
            process.expect(&expected).unwrap();
            end.wait(process, Awaited::Messages(&expected));
            assert_eq!(read_lent(process, end), WORDS[1]);
            assert_eq!(end.expect(process, 1), [WORDS[2]]);
        }
    });
}

/// The lender fails while the borrower may be reading: it gets its memory back only when nobody reads it.
#[test]
fn a_loan_is_revoked_or_its_reader_awaited() {
    between_two(1, 3, |process, end| {
        end.let_both_begin(process);
        if process.pid() == 0 {
            let area = bytes();
            lend(process, end, &area).unwrap();
            let cause = Cause::Panicked { message: String::new() };
            process.fail(Error::fatal(0, 0, cause));
            // SAFETY: the area is this process's own.
            area.with_mut(|bytes| unsafe { (*bytes)[0] = 0 });
            return;
        }
        if !end.awaits_one(process) {
            return;
        }
        assert_eq!(read_lent(process, end), WORDS[1]);
        let _ = process.expect(&[]);
    });
}

/// A ring goes from one sender to the next, who may come before its owner has opened for it and its
/// former sender has closed. The next sender looks a few times only: two that wait for a third by
/// looking would keep loom from running it.
#[test]
fn a_ring_goes_from_sender_to_sender() {
    among(3, 1, 2, |process| {
        if process.pid() == 0 {
            let end = end_of(open(process, 1));
            assert_eq!(end.expect(process, 1), [WORDS[1]]);
            process.close(end.link).unwrap();
            let expected = [Expect::one(open(process, 2))];
            process.expect(&expected).unwrap();
            if look(process, Awaited::Messages(&expected)).unwrap() {
                assert_eq!(end_of(expected[0].link).words(process, 1), [WORDS[2]]);
            }
        } else {
            let end = End { link: open(process, 0), slot: register(process) };
            end.put(process, process.pid(), Travel::Cell);
            if process.pid() == 1 {
                end.flush(process);
                process.close(end.link).unwrap();
            } else {
                let _ = look(process, Awaited::Flushed).unwrap();
            }
        }
    });
}

/// The receiving side of a link.
fn end_of(link: Link) -> End {
    End { link, slot: GlobalSlot::NONE.into() }
}
