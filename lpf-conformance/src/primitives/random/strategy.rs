//! How random programs are drawn, so that they shrink well.
//!
//! What is drawn are *wishes*: numbers without any condition between them. A wish is turned into a
//! legal request by reducing it to what the slots allow; so every smaller set of wishes is a legal
//! program too.

use lpf_core::Pid;
use proptest::prelude::*;

use super::program::{NULL, Place, Program, Request, SPARSE, SlotSpec, Step};

const SPARSE_BYTES: u64 = 8 << 30;

/// A request as drawn.
#[derive(Clone, Copy, Debug)]
struct Wish {
    is_put: bool,
    /// Which of the places that qualify.
    source: u16,
    target: u16,
    /// Which of a sparse slot's regions.
    region: u8,
    source_offset: u32,
    target_offset: u32,
    bytes: u32,
    /// The same request so many times more.
    repeats: u8,
}

fn wish() -> impl Strategy<Value = Wish> {
    // Few offsets and lengths, so that requests often overlap, touch and coincide.
    let offset = prop_oneof![
        4 => 0u32..40,
        2 => (0u32..8).prop_map(|k| 32 * k),
        1 => 0u32..80_000,
    ];
    let bytes = prop_oneof![
        1 => Just(0u32),
        4 => 1u32..40,
        3 => prop_oneof![Just(8u32), Just(16), Just(32), Just(64)],
        2 => 40u32..300,
        1 => 65_500u32..65_560,
    ];
    let repeats = prop_oneof![6 => Just(0u8), 1 => 1u8..4];
    let which = (any::<bool>(), any::<u16>(), any::<u16>(), 0u8..4);
    (which, offset.clone(), offset, bytes, repeats).prop_map(
        |((is_put, source, target, region), source_offset, target_offset, bytes, repeats)| Wish {
            is_put,
            source,
            target,
            region,
            source_offset,
            target_offset,
            bytes,
            repeats,
        },
    )
}

fn size(sparse: bool) -> impl Strategy<Value = u64> {
    let most = if sparse { SPARSE_BYTES } else { 4096 };
    prop_oneof![
        1 => Just(0u64),
        1 => Just(NULL),
        6 => 1u64..400,
        1 => 66_000u64..80_000,
        1 => Just(most),
    ]
}

fn slot(sparse: bool) -> impl Strategy<Value = SlotSpec> {
    (prop::bool::weighted(0.7), prop::collection::vec(size(sparse), 8))
        .prop_map(|(global, sizes)| SlotSpec { global, sizes })
}

/// A superstep as drawn.
#[derive(Clone, Debug)]
struct StepWish {
    written: Vec<bool>,
    partial_syncs: u64,
    promise: bool,
    wishes: Vec<Wish>,
}

fn step() -> impl Strategy<Value = StepWish> {
    let written = prop::collection::vec(any::<bool>(), 64);
    let partial_syncs = prop_oneof![3 => Just(0u64), 1 => 1u64..4];
    let wishes = prop::collection::vec(wish(), 0..60);
    (written, partial_syncs, any::<bool>(), wishes).prop_map(
        |(written, partial_syncs, promise, wishes)| StepWish {
            written,
            partial_syncs,
            promise,
            wishes,
        },
    )
}

/// Programs of 1 to 8 processes; `sparse` allows slots of gigabytes.
pub(super) fn programs(sparse: bool) -> impl Strategy<Value = Program> {
    let slots = prop::collection::vec(slot(sparse), 1..7);
    (1..=8_usize, slots, prop::collection::vec(step(), 0..8)).prop_map(realise)
}

fn realise((procs, mut slots, steps): (Pid, Vec<SlotSpec>, Vec<StepWish>)) -> Program {
    slots.iter_mut().for_each(|slot| slot.sizes.truncate(procs));
    let steps = steps.into_iter().map(|wish| realise_step(procs, &slots, wish)).collect();
    Program { procs, slots, steps }
}

fn realise_step(procs: Pid, slots: &[SlotSpec], wish: StepWish) -> Step {
    let places = procs * slots.len();
    let written: Vec<bool> = (0..places).map(|at| wish.written[at % wish.written.len()]).collect();
    // Places by whether they are written and whether they have to be global.
    let choose = |is_written: bool, global: bool, choice: u16| {
        let fits =
            |at: &usize| written[*at] == is_written && (!global || slots[at % slots.len()].global);
        let all: Vec<usize> = (0..places).filter(fits).collect();
        let at = *all.get(choice as usize % all.len().max(1))?;
        Some((at / slots.len(), at % slots.len()))
    };
    let mut requests = Vec::new();
    for w in &wish.wishes {
        let source = choose(false, !w.is_put, w.source);
        let target = choose(true, w.is_put, w.target);
        let (Some(source), Some(target)) = (source, target) else { continue };
        let source = place(slots, source, w.region, w.source_offset);
        let target = place(slots, target, w.region, w.target_offset);
        let room = |place: &Place| slots[place.slot].bytes(place.pid) - place.offset;
        let bytes = u64::from(w.bytes).min(room(&source)).min(room(&target));
        let request = Request { is_put: w.is_put, source, target, bytes };
        requests.extend(std::iter::repeat_n(request, 1 + usize::from(w.repeats)));
    }
    Step { written, partial_syncs: wish.partial_syncs, promise: wish.promise, requests }
}

/// A place in a slot; offsets beyond its end are folded back, those of sparse slots lie near the
/// beginning, a middle, 4 GiB, or the end.
fn place(slots: &[SlotSpec], (pid, slot): (Pid, usize), region: u8, offset: u32) -> Place {
    let len = slots[slot].bytes(pid);
    let offset = u64::from(offset);
    let offset = if len >= SPARSE {
        let region = [0, (3 << 30) - 17, (4 << 30) - 20, len - 80_300][usize::from(region)];
        region + offset
    } else if offset > len {
        offset % (len + 1)
    } else {
        offset
    };
    Place { pid, slot, offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn a_program_travels_as_bytes(program in programs(true)) {
            prop_assert_eq!(Program::from_bytes(&program.to_bytes()), program);
        }

        #[test]
        fn a_program_is_legal(program in programs(true)) {
            for request in program.steps.iter().flat_map(|step| &step.requests) {
                let slots = &program.slots;
                prop_assert!(request.read().end <= slots[request.source.slot].bytes(request.source.pid));
                prop_assert!(request.written().end <= slots[request.target.slot].bytes(request.target.pid));
                let remote = if request.is_put { request.target } else { request.source };
                prop_assert!(slots[remote.slot].global);
            }
            for step in &program.steps {
                let slots = program.slots.len();
                let is_written = |p: Place| step.written[p.pid * slots + p.slot];
                prop_assert!(step.requests.iter().all(|r| is_written(r.target) && !is_written(r.source)));
            }
        }
    }
}
