//! `lpf probe`: r, g and l of this machine, shown and saved.

mod exchange;
mod plot;
mod shown;

use std::io;

use lpf::host::Host;
use lpf::machine::{Growth, Row};
use lpf::measure::task::{Task, Watch};
use lpf::measure::{Alone, Measured, Plan};
use lpf::settings::Exchange;
use lpf::tables::{Saved, Store, Table};
use lpf::{Context, Pid};
use serde::{Deserialize, Serialize};

use self::exchange::Exchanges;
use crate::busy::Busy;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::measuring::Measuring;
use crate::output;
use crate::place::{Measurement, Place};
use crate::progress::Bar;
use crate::remarks::Remarks;
use crate::uncertainty::caveat;

/// A row of `--json` and `--csv`; intervals are half widths at 95 %.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProbeRow {
    pub(crate) backend: &'static str,
    pub(crate) p: Pid,
    pub(crate) word_bytes: usize,
    pub(crate) r_ns_per_byte: f64,
    pub(crate) g_ns_per_byte: f64,
    pub(crate) g_ci95: f64,
    pub(crate) l_ns: f64,
    pub(crate) l_ci95: f64,
    pub(crate) g_over_r: f64,
    pub(crate) l_words: f64,
    pub(crate) n_max_bytes: usize,
    pub(crate) samples: u64,
    pub(crate) host: String,
    pub(crate) remarks: Remarks,
}

/// What a g below r means.
const BELOW_R: &str = "a g below r is noise";

/// What the numbers of a quick probe are worth.
const QUICK: &str = "a quick probe (--quick, or less than 10 seconds) moves few bytes, which stay in the caches: a full one finds a larger g for short words";

impl ProbeRow {
    fn new(
        backend: &'static str,
        host: &str,
        plan: &Plan,
        measured: &Measured,
        row: &Row,
        common: &[String],
    ) -> Self {
        let mut all = plan.words.iter().zip(&measured.largest);
        let largest = all.find(|(word, _)| word.bytes == row.word_bytes);
        let below = (row.g_ns_per_byte < row.r_ns_per_byte).then(|| BELOW_R.to_string());
        ProbeRow {
            backend,
            p: plan.p,
            word_bytes: row.word_bytes,
            r_ns_per_byte: row.r_ns_per_byte,
            g_ns_per_byte: row.g_ns_per_byte,
            g_ci95: row.g_ci95,
            l_ns: row.l_ns,
            l_ci95: row.l_ci95,
            g_over_r: row.g_ns_per_byte / row.r_ns_per_byte,
            l_words: row.l_ns / (row.r_ns_per_byte * row.word_bytes as f64),
            n_max_bytes: largest.map_or(0, |(_, &bytes)| bytes),
            samples: row.samples,
            host: host.into(),
            remarks: common.iter().cloned().chain(below).collect(),
        }
    }
}

/// The share of the time in which ways to exchange are compared, where there are any.
const FOR_EXCHANGES: f64 = 0.1;

pub(crate) fn run(options: &Measuring) -> Result<()> {
    let mut place = Place::find(options)?;
    place.check_plot(options)?;
    place.enter()?;
    warn_if_not_to_be_saved();
    let backend = place.backend;
    let host = Host::this();
    let (mut all, mut plots, mut unsaved) = (Vec::new(), Vec::new(), Ok(()));
    let mut end = Ok(());
    for p in place.processes(options)? {
        let plan = Plan::for_host(&host, p, place.growth(), options.time(5, 60), options.quick);
        let busy = Busy::begin(&place);
        let exchanges = Exchanges::measure(&mut place, p, plan.time.mul_f64(FOR_EXCHANGES));
        let measured = exchanges.and_then(|them| Ok((them, measure(&mut place, &plan)?)));
        let (measured, ended) = interrupt::split(measured);
        end = ended;
        let Some((exchanges, mut measured)) = measured else { break };
        measured.parameters.rows.retain(|row| row.g_ns_per_byte > 0.0);
        if measured.parameters.rows.is_empty() {
            break;
        }
        place.settle_exchange(None);
        let exchange = exchanges.as_ref().map(|exchanges| exchanges.cheaper);
        let mut common = busy.remarks();
        common.extend(plan.quick.then(|| QUICK.to_string()));
        let kept = match end {
            Ok(()) => save(backend, plan.quick, exchange, &measured),
            Err(_) => Ok("interrupted, so the table is not saved".into()),
        };
        let row = |row| ProbeRow::new(backend, &host.name, &plan, &measured, row, &common);
        let rows: Vec<_> = measured.parameters.rows.iter().map(row).collect();
        if options.is_for_programs() {
            kept.iter().for_each(output::say);
            all.extend(rows);
        } else {
            output::people(|out| {
                shown::print(out, &host, &plan, &rows, &measured, end.is_err())?;
                if let Some(exchanges) = &exchanges {
                    writeln!(out, "{}", exchanges.sentence())?;
                }
                kept.iter().try_for_each(|kept| writeln!(out, "{kept}"))
            })?;
        }
        match kept {
            Ok(_) if end.is_ok() => warn_of(&measured.parameters.rows),
            Ok(_) => {}
            Err(why) => {
                output::say(why);
                unsaved = Err(Failure::Said);
            }
        }
        plots.push((p, measured));
        if end.is_err() {
            break;
        }
    }
    if plots.is_empty() {
        return interrupt::without_rows(end);
    }
    options.print(&all, |_| Ok(()))?;
    // Last: what was measured shall not be lost with a plot that cannot be written.
    for (nth, (p, measured)) in plots.iter().enumerate() {
        if let Some(path) = &options.svg {
            let machine = format!("{backend}, {}", host.name);
            plot::draw(&numbered(path, nth), &machine, *p, measured)?;
        }
    }
    end.and(unsaved)
}

/// Measuring g and l.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GAndL;

/// What is measured, and what was measured before, as it takes no section.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    plan: Plan,
    alone: Alone,
    growth: Growth,
}

impl Task for GAndL {
    type Order = Order;
    type Found = Measured;

    fn run(ctx: &mut Context<'_>, order: &Order, watch: &Watch) -> lpf::Result<Measured> {
        let Order { plan, alone, growth } = order;
        lpf::measure::measure(
            ctx,
            plan,
            alone,
            *growth,
            &|progress| {
                watch(progress.elapsed, &|| estimate(&progress.rows));
            },
            &interrupt::came,
        )
    }
}

impl Measurement for GAndL {
    const NAME: &str = "g and l";
}

/// Measures with a bar that shows g and l as far as they are known.
pub(crate) fn measure(place: &mut Place, plan: &Plan) -> Result<Measured> {
    let alone = Alone::measure(plan, &interrupt::came);
    let order = Order { alone, plan: plan.clone(), growth: place.growth() };
    let bar = Bar::new(&format!("probe p = {}", plan.p), plan.time);
    place.measure::<GAndL>(plan.p, &order, bar.watch())
}

fn estimate(rows: &[Row]) -> String {
    let one = |row: &Row| {
        let (word, g) = (output::size(row.word_bytes), output::digits(row.g_ns_per_byte));
        format!("{word}: g {g} ns/B, l {}", output::time(row.l_ns))
    };
    let known = rows.iter().filter(|row| row.g_ns_per_byte > 0.0);
    known.map(one).collect::<Vec<_>>().join(" | ")
}

/// Says before the measurement that its table cannot be saved.
fn warn_if_not_to_be_saved() {
    if let Ok(store) = Store::this()
        && let Err(error) = store.check_writable()
    {
        let path = output::named(store.path().display());
        output::say(format!(
            "{path} cannot be written ({error}), so the table will only be shown; set LPF_TABLE to another folder"
        ));
    }
}

/// Says which numbers are hardly known. They are saved all the same: programs would only guess instead.
fn warn_of(rows: &[Row]) {
    if let Some(caveat) = caveat(rows) {
        output::say(format!("warning: in this table {caveat}"));
    }
}

/// Saves the table; what became of it, for people, and why it could not be saved as an error: the rows are worth their
/// time.
fn save(
    backend: &str,
    quick: bool,
    exchange: Option<Exchange>,
    measured: &Measured,
) -> std::result::Result<String, String> {
    let table = Table { exchange, ..Table::now(backend, quick, measured.parameters.clone()) };
    let store = Store::this().map_err(|error| {
        format!("the table is not saved: {error}; set LPF_TABLE to a folder for tables")
    })?;
    let path = output::named(store.path().display());
    match store.save(table) {
        Ok(Saved::Replaced) => Ok(format!("saved in {path}; programs use it from now on")),
        Ok(Saved::KeptBetter) => Ok(format!(
            "not saved: {path} has a better table, measured longer or on a quieter machine"
        )),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(format!("the table is not saved in {path}: {error}"))
        }
        Err(error) => Err(format!(
            "the table is not saved in {path}: {error}; set LPF_TABLE to another folder and probe again"
        )),
    }
}

/// The file for the nth number of processes: `a.svg`, `a-2.svg`, …
fn numbered(path: &std::path::Path, nth: usize) -> std::path::PathBuf {
    match nth {
        0 => path.to_path_buf(),
        _ => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            path.with_file_name(format!("{stem}-{}.svg", nth + 1))
        }
    }
}
