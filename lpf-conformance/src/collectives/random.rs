//! Random sequences: any collective of any group, in any algorithm, of any element, while groups come and
//! go, members are late and requests are pending.

use lpf_collectives::{Collectives, Settings};
use lpf_core::{Args, Context, Error, Lpf, Pid, Result};
use proptest::prelude::*;

use super::calls::{Call, What};
use super::vectors::{Room, SLOTS};
use crate::random::words::{Reader, to_bytes};
use crate::random::{broadcast, run_all};
use crate::{Harness, Mode};

/// What all do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The members of a group call something on elements of some type.
    Call { group: usize, element: usize, call: Call },
    /// Group after group is divided; a process with colour 0 is in no part.
    Split { group: usize, colours: [u8; 8] },
    /// A group is dropped.
    Drop { group: usize },
    /// A process is late.
    Late { process: Pid, micros: u64 },
    /// Everybody puts to the next one, with nothing done before the next full sync.
    Put,
    /// A full sync.
    Sync,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sequence {
    procs: Pid,
    cell_bytes: usize,
    window: u32,
    scratch_bytes: usize,
    steps: Vec<Step>,
}

/// The longest vector or block.
const LONGEST: usize = 300;
const ELEMENTS: usize = 4;
/// Groups at the same time, beside the whole.
const GROUPS: usize = 5;

impl Step {
    fn words(&self, words: &mut Vec<u64>) {
        let bits = |call: &Call| u64::from(call.local[0]) | u64::from(call.local[1]) << 1;
        match *self {
            Step::Call { group, element, call } => {
                let what = call.what as usize;
                let (at, salt) = (call.at, call.salt);
                let all = [group, element, what, call.way, call.root, call.len, at[0], at[1], salt];
                words.push(0);
                words.extend(all.map(|word| word as u64));
                words.push(bits(&call));
            }
            Step::Split { group, colours } => {
                words.extend([1, group as u64, u64::from_le_bytes(colours)]);
            }
            Step::Drop { group } => words.extend([2, group as u64]),
            Step::Late { process, micros } => words.extend([3, process as u64, micros]),
            Step::Put => words.push(4),
            Step::Sync => words.push(5),
        }
    }

    fn read(words: &mut Reader<'_>) -> Self {
        let mut next = || words.next() as usize;
        match next() {
            0 => {
                let (group, element, what) = (next(), next(), What::ALL[next()]);
                let (way, root, len) = (next(), next(), next());
                let (at, salt, bits) = ([next(), next()], next(), next());
                let local = [bits & 1 == 1, bits & 2 == 2];
                Step::Call { group, element, call: Call { what, way, root, len, at, local, salt } }
            }
            1 => Step::Split { group: next(), colours: (next() as u64).to_le_bytes() },
            2 => Step::Drop { group: next() },
            3 => Step::Late { process: next(), micros: next() as u64 },
            4 => Step::Put,
            _ => Step::Sync,
        }
    }
}

impl Sequence {
    fn to_bytes(&self) -> Vec<u8> {
        let Sequence { procs, cell_bytes, window, scratch_bytes, ref steps } = *self;
        let mut words = vec![procs as u64, cell_bytes as u64, u64::from(window)];
        words.extend([scratch_bytes as u64, steps.len() as u64]);
        steps.iter().for_each(|step| step.words(&mut words));
        to_bytes(&words)
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut words = Reader::new(bytes);
        let (procs, cell_bytes) = (words.next() as Pid, words.next() as usize);
        let (window, scratch_bytes) = (words.next() as u32, words.next() as usize);
        let steps = (0..words.next()).map(|_| Step::read(&mut words)).collect();
        Sequence { procs, cell_bytes, window, scratch_bytes, steps }
    }
}

fn calls() -> impl Strategy<Value = Step> {
    let what = (0..What::ALL.len(), 0usize..64);
    let len = prop_oneof![1 => 0usize..3, 3 => 0usize..20, 2 => 0usize..LONGEST];
    let place = ([0usize..9, 0usize..9], [any::<bool>(), any::<bool>()]);
    (0usize..16, 0..ELEMENTS, what, 0usize..64, len, place, 0usize..1 << 20).prop_map(
        |(group, element, (what, way), root, len, (at, local), salt)| {
            let what = What::ALL[what];
            let call = Call { what, way: way % what.ways(), root, len, at, local, salt };
            Step::Call { group, element, call }
        },
    )
}

fn steps() -> impl Strategy<Value = Step> {
    let colours = prop::array::uniform8(0u8..4);
    prop_oneof![
        12 => calls(),
        3 => (0usize..16, colours).prop_map(|(group, colours)| Step::Split { group, colours }),
        2 => (0usize..16).prop_map(|group| Step::Drop { group }),
        1 => (0..8_usize, 0u64..2000).prop_map(|(process, micros)| Step::Late { process, micros }),
        1 => Just(Step::Put),
        1 => Just(Step::Sync),
    ]
}

fn sequences() -> impl Strategy<Value = Sequence> {
    let cells = prop_oneof![Just(64usize), Just(100), Just(512), Just(4096), Just(8192)];
    let scratch = prop_oneof![Just(0usize), Just(1000), Just(1 << 16)];
    let steps = prop::collection::vec(steps(), 0..80);
    (1..9_usize, cells, 2u32..6, scratch, steps).prop_map(
        |(procs, cell_bytes, window, scratch_bytes, steps)| Sequence {
            procs,
            cell_bytes,
            window,
            scratch_bytes,
            steps,
        },
    )
}

/// The groups of a process, by number: the same numbers at all, but a process may be in none of a number.
/// What is dropped keeps its number.
struct Groups<'s> {
    all: Vec<Option<Collectives<'s>>>,
    is_live: Vec<bool>,
}

impl Groups<'_> {
    /// The number that a step means, if it is still there.
    fn live(&self, group: usize) -> Option<usize> {
        let group = group % self.all.len();
        self.is_live[group].then_some(group)
    }
}

/// The random sequence in process 0's input.
fn random_sequence<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    let bytes = broadcast(ctx, args.input)?;
    let sequence = Sequence::from_bytes(&bytes);
    let (me, p) = (ctx.pid(), ctx.nprocs());
    assert_eq!(p, sequence.procs, "too few processes for a random sequence");
    ctx.resize(ELEMENTS * SLOTS + 2, 2 * sequence.steps.len())?;
    let Sequence { cell_bytes, window, scratch_bytes, .. } = sequence;
    // Blocks of rings may have gaps between them.
    let group_members = (2 * GROUPS + 2) * p;
    let settings = Settings { cell_bytes, window, scratch_bytes, group_members };
    let whole = Collectives::with(ctx, settings)?;
    let most = p * LONGEST;
    let mut bytes = Room::<u8>::new(ctx, most)?;
    let mut words = Room::<u64>::new(ctx, most)?;
    let mut maps = Room::<[u64; 2]>::new(ctx, most)?;
    let mut counted = Room::<[u32; 3]>::new(ctx, most)?;
    let (mut own, left) = (ctx.local::<u64>(1)?, ctx.area::<u64>(1)?);
    ctx.sync()?;
    ctx.write(&mut own)[0] = me as u64;
    let (mut told, mut pending) = (0, false);
    let mut groups = Groups { all: vec![Some(whole)], is_live: vec![true] };
    for step in sequence.steps {
        match step {
            Step::Call { group, element, call } => {
                let group = groups.live(group).and_then(|group| groups.all[group].as_mut());
                let Some(c) = group else { continue };
                match element {
                    0 => call.make(ctx, c, &mut bytes)?,
                    1 => call.make(ctx, c, &mut words)?,
                    2 => call.make(ctx, c, &mut maps)?,
                    _ => call.make(ctx, c, &mut counted)?,
                }
            }
            Step::Split { group, colours } => split(ctx, &mut groups, group, colours)?,
            Step::Drop { group } => {
                if let Some(group) = groups.live(group).filter(|&group| group > 0) {
                    groups.all[group] = None;
                    groups.is_live[group] = false;
                }
            }
            Step::Late { process, micros } if process == me => {
                std::thread::sleep(std::time::Duration::from_micros(micros));
            }
            Step::Late { .. } => {}
            Step::Put => {
                ctx.put(&own, .., (me + 1) % p, &left, 0)?;
                pending = true;
            }
            Step::Sync => {
                ctx.sync()?;
                told = if pending { ((me + p - 1) % p) as u64 } else { told };
            }
        }
        assert_eq!(ctx.read(&left)[0], told, "after {step:?}");
    }
    ctx.sync()
}

/// Divides a group, and compares the parts with what they have to be.
fn split<'s, L: Lpf>(
    ctx: &mut Context<'s, L>,
    groups: &mut Groups<'s>,
    group: usize,
    colours: [u8; 8],
) -> Result<()> {
    if groups.is_live.iter().filter(|&&is_live| is_live).count() > GROUPS {
        return Ok(());
    }
    let Some(group) = groups.live(group) else { return Ok(()) };
    let colour = |pid: Pid| {
        let colour = colours[pid % 8];
        (colour > 0).then_some(usize::from(colour))
    };
    let own = colour(ctx.pid());
    let part = match &mut groups.all[group] {
        None => None,
        Some(c) => {
            let part = c.split(ctx, own)?;
            let alike = c.members().iter().copied().filter(|&pid| colour(pid) == own);
            let members: Vec<Pid> = alike.collect();
            if own.is_some() != part.is_some() {
                return Err(Error::program("a colour and no group, or the other way round"));
            }
            if let Some(part) = &part {
                assert_eq!(part.members(), members);
            }
            part
        }
    };
    groups.all.push(part);
    groups.is_live.push(true);
    Ok(())
}

fn run<H: Harness>(harness: &H, case: &str, mode: Mode) {
    run_all(harness, case, mode, sequences(), |sequence| {
        let input = sequence.to_bytes();
        harness.exec(mode, sequence.procs, random_sequence, Args::input(&input))
    });
}

/// Random sequences on one to eight processes.
pub fn random_sequences_of_collectives_on_random_groups<H: Harness>(harness: &H) {
    run(harness, "random_sequences_of_collectives_on_random_groups", Mode::default());
}

/// The same in the checked mode, which finds nothing to report.
pub fn random_sequences_of_collectives_in_checked_mode<H: Harness>(harness: &H) {
    let mode = Mode { check: true, ..Mode::default() };
    run(harness, "random_sequences_of_collectives_in_checked_mode", mode);
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn a_sequence_travels_as_bytes(sequence in sequences()) {
            prop_assert_eq!(Sequence::from_bytes(&sequence.to_bytes()), sequence);
        }
    }
}
