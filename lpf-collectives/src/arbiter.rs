//! The arbiter makes the pairs of trees that grow as members arrive, in a helper thread of the root's process.
//!
//! A member that is idle posts that in a register of the board. The helper of the root's
//! process reads it, and answers in another register with all pairs that it has made in this call. So one thread makes
//! all pairs, and no two members have to agree. Both registers name the call. The root's arbiter begins with
//! the next call when the root has ended this one; then all members have read the answers.
//!
//! All arbiters of a group have one register for posts. So a member that uses another arbiter, or another root, is
//! visible to the others. From the two posts every member knows the difference.
//!
//! A member that waits for a pair waits for all members that have not posted in this call. It publishes that
//! ([`Runtime::consult`](lpf_core::Runtime::consult)), so a member that makes another call, or has left, is found as in every other collective. An
//! arbiter that is dropped reports nothing: the next action of its process ends the waits of the others.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lpf_core::board::{Board, Topic};
use lpf_core::waits::Consult;
use lpf_core::{Call, Cause, Context, Error, Lpf, Pid, Raw, Result};
use parking_lot::Mutex;

use crate::arrival_pattern::pairing::{Growth, Pairs};
use crate::collectives::Collectives;
use crate::hash::mixed;
use crate::helper::{Helped, Work, help, wake_all};

/// Between two looks in a call, of who waits for a pair too; else; and if nothing has happened for long. Who posts
/// wakes the helper of its own process, so that one that has all members looks between calls only when it is woken.
const OFTEN: Duration = Duration::from_micros(100);
const SELDOM: Duration = Duration::from_millis(2);
const RARELY: Duration = Duration::from_millis(10);
/// Looks without news after which it looks rarely.
const LONG: u32 = 200;

/// What a member posts: that it is idle for the `nth` time in a call of its group, whose stamp tells it from others. The
/// rest is in the stamp, too, and is here to be named where it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Post {
    call: u64,
    stamp: u64,
    nth: u64,
    arbiter: u64,
    root: u64,
    bytes: u64,
}

/// What the arbiter answers: the pairs of a call, or two members that are in different calls.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    call: u64,
    differ: Option<[Pid; 2]>,
    pairs: Vec<[Pid; 2]>,
}

fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let chunks = bytes.get(..8 * N)?.chunks_exact(8);
    let mut words = chunks.map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
    Some(std::array::from_fn(|_| words.next().unwrap_or(0)))
}

/// A sender and a receiver as one word.
pub(crate) fn pair_word([a, b]: [Pid; 2]) -> u64 {
    (a as u64) << 32 | b as u64
}

fn unpaired(word: u64) -> [Pid; 2] {
    [word >> 32, word & 0xffff_ffff].map(|member| member as Pid)
}

impl Post {
    fn to_bytes(self) -> Vec<u8> {
        let Post { call, stamp, nth, arbiter, root, bytes } = self;
        [call, stamp, nth, arbiter, root, bytes].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [call, stamp, nth, arbiter, root, bytes] = words(bytes)?;
        Some(Post { call, stamp, nth, arbiter, root, bytes })
    }
}

impl Answer {
    fn to_bytes(&self) -> Vec<u8> {
        let differ = self.differ.map_or(u64::MAX, pair_word);
        let pairs = self.pairs.iter().copied().map(pair_word);
        [self.call, differ].into_iter().chain(pairs).flat_map(u64::to_le_bytes).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [call, differ] = words(bytes)?;
        let differ = (differ != u64::MAX).then(|| unpaired(differ));
        let pairs = bytes[16..].chunks_exact(8);
        let pairs = pairs.filter_map(|bytes| Some(unpaired(words::<1>(bytes)?[0]))).collect();
        Some(Answer { call, differ, pairs })
    }
}

/// The registers of an arbiter, and of its group.
#[derive(Clone, Copy)]
struct Registers {
    group: u64,
    id: u64,
}

impl Registers {
    fn posts(self) -> Topic {
        Topic(mixed(self.group, u64::MAX))
    }

    fn answers(self) -> Topic {
        Topic(mixed(self.id, 1))
    }
}

/// A call whose root is this member.
struct Current {
    call: u64,
    stamp: u64,
    state: Pairs,
    answer: Answer,
    /// How often each member has been idle.
    idle: Vec<u64>,
}

impl Current {
    /// A member says that it is idle.
    fn hear(&mut self, member: usize, nth: u64) -> bool {
        if nth <= self.idle[member] {
            return false;
        }
        self.idle[member] = nth;
        if let Some(made) = self.state.idle(member) {
            self.answer.pairs.push(made);
        }
        true
    }
}

/// The helper's work, at each member: any may be a root.
struct Arbitrates<B> {
    board: B,
    registers: Registers,
    members: Vec<Pid>,
    me: usize,
    growth: Growth,
    /// The last call that this member was the root of, and is done with.
    done: Arc<Mutex<u64>>,
    current: Option<Current>,
}

impl<B: Board> Work for Arbitrates<B> {
    fn go_on(&mut self) -> Result<bool> {
        let done = *self.done.lock();
        self.current.take_if(|current| current.call <= done);
        let all = self.board.read_all(self.registers.posts())?;
        let post = |&member: &Pid| Post::from_bytes(&all.get(member)?.as_ref()?.bytes);
        let posts: Vec<Option<Post>> = self.members.iter().map(post).collect();
        if self.current.is_none() {
            let own = posts.iter().flatten();
            let (id, me) = (self.registers.id, self.me as u64);
            let own = own.filter(|post| post.arbiter == id && post.root == me && post.call > done);
            let Some(first) = own.min_by_key(|post| post.call) else { return Ok(false) };
            let (call, stamp, members) = (first.call, first.stamp, self.members.len());
            self.current = Some(Current {
                call,
                stamp,
                state: Pairs::new(self.growth, members, self.me),
                answer: Answer { call, differ: None, pairs: Vec::with_capacity(members) },
                idle: vec![0; members],
            });
        }
        let Some(current) = &mut self.current else { return Ok(false) };
        let of_call = |post: &Option<Post>| post.filter(|post| post.call == current.call);
        let posts: Vec<Option<Post>> = posts.iter().map(of_call).collect();
        let stamp = posts[self.me].map_or(current.stamp, |own| own.stamp);
        let place = |other| {
            let is_it =
                |post: &Option<Post>| post.is_some_and(|post| (post.stamp != stamp) == other);
            posts.iter().position(is_it)
        };
        let before = (current.answer.pairs.len(), current.answer.differ);
        let mut news = false;
        if let Some(other) = place(true) {
            let both = [place(false).unwrap_or(self.me), other];
            current.answer.differ = Some(both);
        } else {
            for (member, post) in posts.iter().enumerate() {
                news |= post.is_some_and(|post| current.hear(member, post.nth));
            }
        }
        if (current.answer.pairs.len(), current.answer.differ) != before {
            self.board.write(self.registers.answers(), &current.answer.to_bytes())?;
        }
        Ok(news)
    }

    fn again(&self, quiet: u32) -> Option<Duration> {
        let is_open = self.current.as_ref().is_some_and(|current| current.state.left() > 1);
        match (is_open, self.board.is_in_one_process()) {
            // Each member that posts wakes it.
            (_, true) => None,
            (true, false) => Some(OFTEN),
            (false, false) if quiet < LONG => Some(SELDOM),
            (false, false) => Some(RARELY),
        }
    }
}

/// Makes the pairs of a group's [`reduce_as_they_come`](Collectives::reduce_as_they_come). One helper thread of this
/// operating-system process works for all of them.
pub struct Arbiter<'s, L: Lpf> {
    board: L::Board,
    registers: Registers,
    members: Vec<Pid>,
    me: usize,
    growth: Growth,
    done: Arc<Mutex<u64>>,
    call: Call,
    helped: Option<Helped>,
    section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<L: Lpf> std::fmt::Debug for Arbiter<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Arbiter { members, me, call, .. } = self;
        let mut f = f.debug_struct("Arbiter");
        f.field("members", members).field("me", me).field("call", call).finish_non_exhaustive()
    }
}

impl<'s, L: Lpf> Arbiter<'s, L> {
    /// An arbiter for trees of this growth, the same at every member. Collective over the group: it sends a word to every
    /// member, which opens all connections.
    ///
    /// # Errors
    /// *Mitigable* if the system refuses a thread; *fatal* if the section failed.
    #[track_caller]
    pub fn new(ctx: &mut Context<'s, L>, c: &mut Collectives<'s>, growth: Growth) -> Result<Self> {
        // Who has another way to grow has another arbiter.
        let registers = Registers { group: c.id(), id: mixed(c.next_id(), growth as u64) };
        c.warm_up(ctx)?;
        let (board, me, members) = (ctx.raw().board(), c.me(), c.members().to_vec());
        let done = Arc::<Mutex<u64>>::default();
        let work = Arbitrates {
            board: board.clone(),
            registers,
            members: members.clone(),
            me,
            done: done.clone(),
            current: None,
            growth,
        };
        let refused = |error: std::io::Error| {
            let cause = Cause::Collective(format!("the arbiter has no thread: {error}"));
            Error::mitigable(ctx.pid(), ctx.superstep(), cause)
        };
        let helped = Some(help(work).map_err(refused)?);
        let section = PhantomData;
        let call = Call::default();
        Ok(Arbiter { board, registers, members, me, growth, done, call, helped, section })
    }

    /// Which one it is, and of which group.
    pub(crate) fn id(&self) -> (u64, u64) {
        (self.registers.id, self.registers.group)
    }

    /// How its trees grow.
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// The next call of its group that it is taken for.
    pub(crate) fn enter(&mut self, call: Call) {
        self.call = call;
    }

    /// What two members differ in, by what they have posted.
    #[cold]
    fn difference(&self, both: [Pid; 2]) -> String {
        let posts = both.map(|pid| {
            let record = self.board.read(pid, self.registers.posts()).ok()??;
            Post::from_bytes(&record.bytes).filter(|post| post.call == self.number())
        });
        let how = match posts {
            [Some(a), Some(b)] if a.arbiter != b.arbiter => "take different arbiters".into(),
            [Some(a), Some(b)] if a.root != b.root => {
                format!("reduce to different roots, members {} and {}", a.root, b.root)
            }
            [Some(a), Some(b)] if a.bytes != b.bytes => {
                format!("reduce {} and {} bytes", a.bytes, b.bytes)
            }
            [Some(_), Some(_)] => "have different operators or element types".into(),
            _ => "differ in arbiter, root, length, operator or element type".into(),
        };
        let [one, other] = both.map(|pid| match self.call.place {
            Some(place) if pid == self.members[self.me] => format!("{pid} (called at {place})"),
            _ => pid.to_string(),
        });
        format!(
            "process {one} and process {other} are both in call {} (reduce_as_they_come) but {how}",
            self.number()
        )
    }

    fn number(&self) -> u64 {
        u64::from(self.call.number)
    }

    /// The member has been idle for the `nth` time, from 1 on, in a call with this stamp to reduce so many bytes: its
    /// next pair, and all that there are by then.
    pub(crate) fn next(
        &self,
        raw: &mut Raw<'_, L>,
        (root, nth): (usize, u64),
        (stamp, bytes): (u64, usize),
    ) -> Result<Answered> {
        let (call, arbiter) = (self.number(), self.registers.id);
        let post = Post { call, stamp, nth, arbiter, root: root as u64, bytes: bytes as u64 };
        self.board.write(self.registers.posts(), &post.to_bytes())?;
        wake_all();
        let answered = || {
            let record = self.board.read(self.members[root], self.registers.answers())?;
            let answer = record.and_then(|record| Answer::from_bytes(&record.bytes));
            let Some(answer) = answer.filter(|answer| answer.call == call) else { return Ok(None) };
            if let Some(differ) = answer.differ {
                return Ok(Some(Err(differ)));
            }
            let mut own = answer.pairs.iter().filter(|pair| pair.contains(&self.me));
            let pair = own.nth(nth as usize - 1).copied();
            Ok(pair.map(|pair| Ok(Answered { pair, pairs: answer.pairs })))
        };
        let absent = || self.absent();
        let wait = Consult { from: self.members[root], absent: &absent, look_every: OFTEN };
        raw.consult(wait, answered)?.map_err(|differ| {
            let both = differ.map(|member| self.members[member]);
            let cause = Cause::Disagreement(self.difference(both));
            let error = Error::fatal(both[1], raw.superstep(), cause);
            raw.fail(error)
        })
    }

    /// The members that have not posted in this call.
    fn absent(&self) -> Vec<Pid> {
        let Ok(all) = self.board.read_all(self.registers.posts()) else { return Vec::new() };
        let has_posted = |member: Pid| {
            let record = all.get(member).and_then(Option::as_ref);
            let post = record.and_then(|record| Post::from_bytes(&record.bytes));
            post.is_some_and(|post| post.call == self.number())
        };
        self.members.iter().copied().filter(|&member| !has_posted(member)).collect()
    }

    /// This member, the root, is done with the call.
    pub(crate) fn is_done(&self) {
        *self.done.lock() = self.number();
    }
}

/// A member's next pair, and all that there are so far.
pub(crate) struct Answered {
    pub(crate) pair: [Pid; 2],
    pub(crate) pairs: Vec<[Pid; 2]>,
}

impl<L: Lpf> Drop for Arbiter<'_, L> {
    fn drop(&mut self) {
        // From here on this process's helper answers no member.
        drop(self.helped.take());
    }
}
