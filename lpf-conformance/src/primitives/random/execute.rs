//! Carries a random program out on every process.

use lpf_core::{Args, Context, Error, GlobalSlot, Lpf, Pid, Result, Slot, SyncAttr};

use super::oracle::{bytes_before, check, named};
use super::program::{NULL, Program, Request, SPARSE, windows};
use crate::memory::{Buffer, bury};
use crate::random::broadcast;

/// The random program in process 0's input.
pub(super) fn random_program<L: Lpf>(ctx: &mut Context<'_, L>, args: Args<'_>) -> Result<()> {
    bury();
    let bytes = broadcast(ctx, args.input)?;
    let program = Program::from_bytes(&bytes);
    // A machine smaller than the program wants cannot run it.
    assert_eq!(ctx.nprocs(), program.procs, "too few processes for a random program");
    let mut areas = Areas::register(ctx, &program)?;
    for step in 0..program.steps.len() {
        areas.fill(&program, step, ctx.pid())?;
        ctx.sync()?;
        superstep(ctx, &program, step, &areas)?;
        areas.check(&program, step, ctx.pid())?;
    }
    ctx.sync()
}

#[derive(Clone, Copy)]
enum Name {
    Global(GlobalSlot),
    Local(Slot),
}

impl Name {
    fn local_side(self) -> Slot {
        match self {
            Name::Global(slot) => slot.into(),
            Name::Local(slot) => slot,
        }
    }

    fn remote_side(self) -> GlobalSlot {
        match self {
            Name::Global(slot) => slot,
            Name::Local(_) => unreachable!("no program names a local slot of another process"),
        }
    }
}

/// This process's slots.
struct Areas {
    memory: Vec<Buffer>,
    names: Vec<Name>,
}

impl Areas {
    fn register<L: Lpf>(ctx: &mut Context<'_, L>, program: &Program) -> Result<Self> {
        ctx.resize(program.slots.len(), program.capacity())?;
        ctx.sync()?;
        let mut areas = Areas { memory: Vec::new(), names: Vec::new() };
        for slot in &program.slots {
            let buffer = match slot.sizes[ctx.pid()] {
                NULL => Buffer::null(),
                bytes if bytes >= SPARSE => Buffer::sparse(bytes as usize)
                    .ok_or_else(|| Error::program("the system refuses address space"))?,
                bytes => Buffer::zeroed(bytes as usize),
            };
            areas.names.push(if slot.global {
                Name::Global(buffer.global(ctx)?)
            } else {
                Name::Local(buffer.local(ctx)?.into())
            });
            areas.memory.push(buffer);
        }
        ctx.sync()?;
        Ok(areas)
    }

    /// Gives every byte its value for this superstep. Nobody has queued a request that names it:
    /// a sync comes between.
    fn fill(&mut self, program: &Program, step: usize, pid: Pid) -> Result<()> {
        for (slot, memory) in self.memory.iter_mut().enumerate() {
            let named = named(program, step, pid, slot);
            for window in windows(&program.slots[slot], pid, &named) {
                let start = window.start as usize;
                memory.write(start, &bytes_before(step, pid, slot, window));
            }
        }
        Ok(())
    }

    fn check(&self, program: &Program, step: usize, pid: Pid) -> Result<()> {
        for (slot, memory) in self.memory.iter().enumerate() {
            check(program, step, pid, slot, memory).map_err(Error::program)?;
        }
        Ok(())
    }
}

fn superstep<L: Lpf>(
    ctx: &mut Context<'_, L>,
    program: &Program,
    step: usize,
    areas: &Areas,
) -> Result<()> {
    let step = &program.steps[step];
    let me = ctx.pid();
    for request in step.requests.iter().filter(|request| request.origin() == me) {
        queue(ctx, request, areas)?;
    }
    for partial in 0..step.partial_syncs {
        let attr = if partial % 2 == 0 { SyncAttr::Flush } else { SyncAttr::Expected(&[]) };
        ctx.sync_with(attr)?;
    }
    if step.promise && step.is_conflict_free() {
        return ctx.sync_with(SyncAttr::NoConflict);
    }
    ctx.sync()
}

fn queue<L: Lpf>(ctx: &mut Context<'_, L>, request: &Request, areas: &Areas) -> Result<()> {
    let (source, target) = (request.source, request.target);
    let (from, to) = (areas.names[source.slot], areas.names[target.slot]);
    let (at, there) = (source.offset as usize, target.offset as usize);
    let bytes = request.bytes as usize;
    if request.is_put {
        let (from, to) = (from.local_side(), to.remote_side());
        ctx.raw().put(from, at, target.pid, to, there, bytes)
    } else {
        let (from, to) = (from.remote_side(), to.local_side());
        ctx.raw().get(source.pid, from, at, to, there, bytes)
    }
}
