//! The collectives object: what it reserves, and groups.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use lpf_core::arrivals::{InboxShape, MAX_WINDOW};
use lpf_core::{Cause, Context, Error, Lpf, Memory, Pid, Result};

use crate::algorithms::{Member, allgather_bruck, allgather_direct};
use crate::blocks::Blocks;
use crate::choices::Choices;
use crate::cost::Vector;
use crate::group::Group;
use crate::hash::mixed;
use crate::kinds::{Algorithm, Collective, SPLIT};
use crate::misuse::misuse;
use crate::preferences::Preferences;
use crate::run::{Buffers, Call, expected, leave};
use crate::schedule::Schedule;
use crate::schedule_cache::ScheduleCache;
use crate::shared::{LINE, Place, Shared, TAIL};
use crate::staging::Staging;
use crate::workspace::Workspace;

/// The room that the collectives of a context reserve, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a cell, in which short messages and parts of long ones travel: the longest element that can
    /// be reduced. At least 64.
    pub cell_bytes: usize,
    /// Messages from one member to another that may be under way: 2 to 64.
    pub window: u32,
    /// Bytes of the collectives' own memory, for data that passes through a member. Longer vectors are processed
    /// piece by piece.
    pub scratch_bytes: usize,
    /// Members of all groups together that a process can be in at the same time, beside those of the whole
    /// context.
    pub group_members: usize,
}

/// The memory, slots and requests of [`Settings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Slots, on top of the user's.
    pub slots: usize,
    /// Requests, on top of the user's.
    pub requests: usize,
    /// Bytes of memory at every process, about.
    pub bytes: usize,
}

impl Settings {
    /// The default for a context of `nprocs` processes:
    /// - up to 16 cells of 32 KiB for a ring, if all take no more than 16 MiB, or else 4 shorter ones;
    /// - room for groups of twice as many members as the context has;
    /// - 1 MiB of scratch.
    ///
    /// | measured | 16 cells | 4 cells |
    /// |---|---|---|
    /// | a broadcast of 1 MiB between two processes of MPI (`lpf bench collectives --backend mpi -p 2 --collective broadcast --size 1048576`) | 71 us | 123 us |
    /// | a ring on eight hosts of 100 Mbit/s, where a word of credit waits behind data (`benches/reduce-cluster`) | 319 ms | 354 ms |
    pub fn new(nprocs: Pid) -> Self {
        const ALL: usize = 16 << 20;
        const CELL: usize = 32 << 10;
        let group_members = 2 * nprocs;
        let rings = (nprocs + group_members).max(1);
        let window = (ALL / CELL / rings).clamp(4, 16);
        let cell_bytes = (ALL / (rings * window)).clamp(1 << 10, CELL) / 64 * 64;
        let window = window as u32;
        Settings { cell_bytes, window, scratch_bytes: 1 << 20, group_members }
    }

    /// The needs of a context of `nprocs` processes.
    pub fn needs(&self, nprocs: Pid) -> Needs {
        let rings = nprocs.saturating_add(self.group_members);
        let cells = rings.saturating_mul(self.window as usize);
        let cells = cells.saturating_mul(self.cell_bytes.saturating_add(192));
        let own = self.scratch(nprocs).saturating_add(Staging::least(nprocs));
        // Of a round of full supersteps: a put to and from everybody, and of stamps.
        let requests = 2 * nprocs + 4;
        Needs { slots: 2, requests, bytes: cells.saturating_add(own) }
    }

    /// Half of the least is kept for what a member has to have on lines of its own.
    fn scratch(&self, nprocs: Pid) -> usize {
        let least = TAIL + 2 * LINE * (nprocs + 3);
        let bytes = self.scratch_bytes.max(least).checked_next_multiple_of(LINE);
        // What no memory has is refused where it is asked for.
        bytes.unwrap_or(usize::MAX / LINE * LINE)
    }
}

/// The collectives of a group of processes: the whole context, or a part of it ([`split`](Self::split)).
///
/// Every member calls the same collectives of its group in the same order, with the same sizes, root,
/// algorithm, and type of operator and elements. A difference is *fatal*, and the text names two members that disagree.
/// A *misuse* is found at the call, before anything is sent: the caller can make the right call instead, and the others
/// wait for it. Groups do not wait for each other.
///
/// Make one for a section. When all processes have dropped the object and the groups made from it, the next full sync
/// gives back its scratch and its slots. Its cells and its reservation stay until the section ends. Functions
/// take it with the section's lifetime: `all: &mut Collectives<'s>` beside `ctx: &mut Context<'s, L>`.
///
/// ```
/// use lpf_collectives::{Collectives, Sum};
/// # lpf_pthreads::Config::new().procs(4).exec(4, lpf_core::Args::none(), |ctx, _args| {
/// ctx.resize(1, 0)?;
/// let mut collectives = Collectives::new(ctx)?;
/// let mut x = ctx.local::<f64>(1000)?;
/// ctx.write(&mut x).fill(1.0);
/// collectives.allreduce_in_place(ctx, &Sum, &mut x)?;
/// assert_eq!(ctx.read(&x)[999], ctx.nprocs() as f64);
/// # Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Collectives<'s> {
    pub(crate) group: Group,
    pub(crate) shared: Rc<RefCell<Shared>>,
    pub(crate) workspace: Rc<RefCell<Workspace>>,
    pub(crate) staging: Rc<RefCell<Staging<'s>>>,
    pub(crate) preferences: Preferences,
    pub(crate) choices: Choices,
    pub(crate) schedules: ScheduleCache,
    /// Whether the section is in strict mode.
    pub(crate) strict: bool,
    pub(crate) planning: Cell<Duration>,
    pub(crate) by_arrival: Cell<&'static str>,
    section: PhantomData<fn(&'s ()) -> &'s ()>,
}

impl<'s> Collectives<'s> {
    /// Of the whole context, with the default settings. Collective; two full syncs, which complete the caller's
    /// pending requests.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused.
    #[track_caller]
    pub fn new<L: Lpf>(ctx: &mut Context<'s, L>) -> Result<Self> {
        let settings = Settings::new(ctx.nprocs());
        Self::with(ctx, settings)
    }

    /// Of the whole context. Collective; two full syncs, which complete the caller's pending requests.
    ///
    /// # Errors
    /// *Mitigable* if memory is refused, *misuse* for impossible settings.
    #[track_caller]
    pub fn with<L: Lpf>(ctx: &mut Context<'s, L>, settings: Settings) -> Result<Self> {
        let (me, nprocs) = (ctx.pid(), ctx.nprocs());
        let Settings { cell_bytes, window, .. } = settings;
        if cell_bytes < 64 || !(2..=MAX_WINDOW).contains(&window) {
            let text = format!(
                "collectives need a Settings::cell_bytes of at least 64 and a Settings::window of 2 to {MAX_WINDOW}, \
                 not {cell_bytes} and {window}"
            );
            return Err(misuse(ctx, text));
        }
        let needs = settings.needs(nprocs);
        ctx.raw().reserve(needs.slots, needs.requests)?;
        // Groups that are no whole context have barriers then.
        let strict = ctx.raw().strict();
        let rings = nprocs.saturating_add(Group::rings(settings.group_members, strict));
        let inbox = ctx.inbox(InboxShape { rings, window, cell_bytes })?;
        ctx.sync()?;
        let scratch_bytes = settings.scratch(nprocs);
        let scratch = ctx.area::<u8>(scratch_bytes)?;
        let staging = Staging::new(ctx)?;
        let refused = |bytes| {
            let cause = Cause::OutOfMemory { what: "a schedule".into(), bytes };
            Error::mitigable(ctx.pid(), ctx.superstep(), cause)
        };
        let workspace = Workspace::new(nprocs).map_err(refused)?;
        ctx.sync()?;
        let place = Place { slot: scratch.slot(), offset: 0, data: scratch.data() };
        let shape = (rings, window as usize, cell_bytes);
        let scratch = (place, scratch_bytes, scratch.into_registration());
        let mut shared = Shared::new(inbox, shape, scratch, ctx.closings());
        let first = shared.take_rings(nprocs).unwrap_or(0);
        let members: Rc<[Pid]> = (0..nprocs).collect();
        // Calls of another object of this context are not this one's.
        let id = mixed(1, inbox.number() as u64);
        let firsts = vec![first; nprocs].into_boxed_slice();
        Ok(Collectives {
            group: Group::new(members, me, id, firsts, false),
            shared: Rc::new(RefCell::new(shared)),
            workspace: Rc::new(RefCell::new(workspace)),
            staging: Rc::new(RefCell::new(staging)),
            preferences: Preferences::default(),
            choices: Choices::default(),
            schedules: ScheduleCache::new(),
            strict,
            planning: Cell::default(),
            by_arrival: Cell::default(),
            section: PhantomData,
        })
    }

    /// The time that the latest call by arrival needed to choose an algorithm and to make its schedule: zero if both
    /// were known from an earlier call.
    pub fn planning(&self) -> Duration {
        self.planning.get()
    }

    /// The name of the algorithm that the latest call by arrival used, as in tables; empty before the first.
    pub fn algorithm_by_arrival(&self) -> &'static str {
        self.by_arrival.get()
    }

    /// The members' processes, by their position in the group.
    pub fn members(&self) -> &[Pid] {
        self.group.members()
    }

    /// This process's position in the group.
    pub fn me(&self) -> usize {
        self.group.member().me
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.group.members().len()
    }

    /// Never: this process is a member.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The algorithms to use. They must be the same at every member, or the next collective is *fatal*.
    pub fn preferences_mut(&mut self) -> &mut Preferences {
        self.schedules.forget();
        &mut self.preferences
    }

    /// The algorithm that is used without a preference, if each member contributes this vector in all
    /// and the operator commutes.
    pub fn cheapest_of<L: Lpf>(
        &self,
        ctx: &Context<'s, L>,
        collective: Collective,
        v: impl Into<Vector>,
    ) -> Algorithm {
        collective.cheapest(&ctx.probe(), self.len(), v)
    }

    /// Groups of the members that pass the same colour; `None` for a member that passes none. Collective over
    /// this group: two allgathers of a word, in ⌈log2 p⌉ rounds each. In a group its members keep their order. If one
    /// member drops a group, all have to drop it before any of them joins a later group.
    ///
    /// # Errors
    /// *Misuse* at every member if one has no room left for the members of another group
    /// ([`Settings::group_members`]), and of the colour `usize::MAX`; *fatal* if the section failed.
    #[track_caller]
    pub fn split<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        colour: Option<usize>,
    ) -> Result<Option<Self>> {
        if colour == Some(usize::MAX) {
            let text = "usize::MAX is not a colour; a member of no group passes None";
            return Err(misuse(ctx, text.into()));
        }
        let word = colour.map_or(u64::MAX, |colour| colour as u64);
        let colours = self.words(ctx, word, allgather_bruck)?;
        let places: Vec<usize> = (0..self.len()).filter(|&m| colours[m] == word).collect();
        let barriers = self.strict && places.len() < ctx.nprocs();
        let taken = Group::rings(places.len(), barriers);
        let rings = match colour {
            None => Some(0),
            Some(_) => self.shared.borrow_mut().take_rings(taken),
        };
        let told = self.words(ctx, rings.map_or(u64::MAX, |ring| ring as u64), allgather_bruck)?;
        self.group.children += 1;
        if let Some(full) = told.iter().position(|&ring| ring == u64::MAX) {
            if let (Some(_), Some(first)) = (colour, rings) {
                self.shared.borrow_mut().give_rings(first, taken);
            }
            let text = format!(
                "process {} has no room for the members of another group; Settings::group_members says how much there is",
                self.group.pid(full)
            );
            return Err(misuse(ctx, text));
        }
        if colour.is_none() {
            return Ok(None);
        }
        let me = places.iter().position(|&place| place == self.me()).unwrap_or(0);
        let members: Rc<[Pid]> = places.iter().map(|&place| self.group.pid(place)).collect();
        let rings = places.iter().map(|&place| told[place] as usize).collect();
        let id = mixed(mixed(self.group.id(), self.group.children), word);
        Ok(Some(Collectives {
            group: Group::new(members, me, id, rings, barriers),
            shared: self.shared.clone(),
            workspace: self.workspace.clone(),
            staging: self.staging.clone(),
            preferences: self.preferences,
            choices: Choices::default(),
            schedules: ScheduleCache::new(),
            strict: self.strict,
            planning: Cell::default(),
            by_arrival: Cell::default(),
            section: PhantomData,
        }))
    }

    /// The group of every `stride`-th member from `first` on, at most `count` of them; `None`
    /// for the others. Collective over this group, as [`split`](Self::split).
    ///
    /// # Errors
    /// As [`split`](Self::split); *misuse* for a stride of 0.
    #[track_caller]
    pub fn strided<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        first: usize,
        stride: usize,
        count: usize,
    ) -> Result<Option<Self>> {
        if stride == 0 {
            return Err(misuse(ctx, "a stride of 0 names one member again and again".into()));
        }
        let is_in = self
            .me()
            .checked_sub(first)
            .is_some_and(|distance| distance.is_multiple_of(stride) && distance / stride < count);
        self.split(ctx, is_in.then_some(0))
    }

    /// The group's number.
    pub(crate) fn id(&self) -> u64 {
        self.group.id()
    }

    /// A number that is the same at every member, and no other's.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.group.children += 1;
        mixed(self.group.id(), self.group.children)
    }

    /// Opens all links of the group, and what connections they need: a word to every member.
    #[track_caller]
    pub(crate) fn warm_up<L: Lpf>(&mut self, ctx: &mut Context<'s, L>) -> Result<()> {
        self.words(ctx, 0, allgather_direct).map(|_| ())
    }

    /// A word of every member.
    #[track_caller]
    fn words<L: Lpf>(
        &mut self,
        ctx: &mut Context<'s, L>,
        own: u64,
        allgather: fn(&mut Schedule, Member, Blocks<'_>),
    ) -> Result<Vec<u64>> {
        let Collectives { group, shared, workspace, .. } = self;
        let (shared, schedule) = (&mut *shared.borrow_mut(), &mut workspace.borrow_mut().schedule);
        let member = group.member();
        let Member { me, members } = member;
        let blocks = Blocks::Equal { first: 0, stride: 8, bytes: 8 };
        schedule.clear();
        allgather(schedule, member, blocks);
        let scratch = shared.scratch;
        let words = scratch.data.cast::<u64>();
        // SAFETY: scratch has room for a word of every process, and nobody else has it now.
        unsafe { words.add(me).write(own) };
        let mut raw = ctx.raw();
        let which = group.enter(&mut raw, SPLIT);
        let buffers = &Buffers { input: scratch, output: scratch };
        let combine = &mut |_: *const u8, _: *const u8, _: *mut u8, _: usize| {};
        let mut call = Call {
            raw: &mut raw,
            which,
            values: None,
            group,
            shared,
            buffers,
            combine,
            part: 64,
            lends: false,
        };
        // SAFETY: scratch is registered and this object's.
        let done = unsafe { expected(&mut call, schedule) };
        leave(&mut raw, done)?;
        // SAFETY: as above; every word was written.
        Ok((0..members).map(|member| unsafe { words.add(member).read() }).collect())
    }
}

impl Drop for Collectives<'_> {
    fn drop(&mut self) {
        let links = self.group.take_links();
        if let Ok(mut shared) = self.shared.try_borrow_mut() {
            shared.forget(links);
        }
    }
}
