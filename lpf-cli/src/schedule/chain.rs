//! The programs of all-reductions along a chain on standard output.

use std::io::{self, Write};

use lpf::collectives::arrival_pattern::chain::{Chain, Hop, Plan, Step};
use serde_json::{Value, json};

use super::file::Fields;
use super::options::ScheduleOf;
use super::plot::{self, Bar};
use crate::failure::Result;
use crate::output::{self, plain, processes};

/// Their programs have 4 P² steps.
const MOST: usize = 2048;

pub(super) fn run(chain: Chain, options: &ScheduleOf) -> Result<()> {
    let fields = Fields::read(&options.instance)?;
    let (tau, arrivals) = (fields.number("tau")?, fields.times("arrivals")?);
    if arrivals.len() > MOST {
        return Err(fields.wrong(&format!(
            "P is {}; the most is {MOST}, because programs for more have too many steps",
            arrivals.len()
        )));
    }
    // All that is computed is a sum of an arrival and some tau, four for each segment at most.
    let most = u64::MAX / 2;
    let most_tau = most / (4 * arrivals.len() as u64 * arrivals.len() as u64);
    if tau == 0 || tau > most_tau {
        return Err(fields.wrong(&format!("tau is {tau}; it has to be from 1 to {most_tau} here")));
    }
    if let Some(late) = arrivals.iter().position(|&time| time > most) {
        return Err(
            fields.wrong(&format!("arrivals[{late}] is {}; the most is {most}", arrivals[late]))
        );
    }
    if let Some(path) = &options.svg {
        crate::plot::check_plot(path)?;
    }
    let plan = Plan::new(chain, tau, &arrivals);
    let (last, hops) = plan.timeline(tau, &arrivals);
    if options.json {
        let mut out = output::standard();
        serde_json::to_writer(&mut out, &object(chain, &plan, tau, &arrivals, &last))?;
        writeln!(out)?;
        out.flush()?;
    } else {
        output::people(|out| shown(out, chain, &plan, &arrivals, &last))?;
    }
    let Some(path) = &options.svg else { return Ok(()) };
    let bar = |hop: &Hop| Bar {
        from: hop.from,
        to: hop.to,
        segment: hop.segment,
        time: (hop.begin as f64, (hop.begin + tau) as f64),
        stored: hop.whole,
    };
    let bars: Vec<Bar> = hops.iter().map(bar).collect();
    let arrivals: Vec<f64> = arrivals.iter().map(|&time| time as f64).collect();
    let caption = format!("All-reduce, {}, {}", chain.name(), processes(plan.processes()));
    plot::draw(path, &caption, plot::Unit::Plain, &arrivals, &bars)
}

/// What a step is called, in the order in which the papers' readers expect it.
fn step(step: Step) -> Value {
    let (verb, peer, segment, whole) = match step {
        Step::Send { to, segment, whole } => ("send", to, segment, whole),
        Step::Receive { from, segment, whole } => ("recv", from, segment, whole),
    };
    json!([verb, peer, segment, if whole { "override" } else { "reduce" }])
}

fn object(chain: Chain, plan: &Plan, tau: u64, arrivals: &[u64], last: &[u64]) -> Value {
    let mut programs = vec![Value::Null; plan.processes()];
    for (place, &rank) in plan.ranks().iter().enumerate() {
        programs[rank] = plan.program(place).into_iter().map(step).collect();
    }
    json!({
        "alg": chain.name(),
        "P": plan.processes(),
        "tau": tau,
        "arrivals": arrivals,
        "id_to_rank": plan.ranks(),
        "pre_steps_by_id": plan.ahead(),
        "last_recv_time": last,
        "programs": programs,
    })
}

fn shown(
    out: &mut dyn Write,
    chain: Chain,
    plan: &Plan,
    arrivals: &[u64],
    last: &[u64],
) -> io::Result<()> {
    writeln!(out, "{}, {}", chain.name(), processes(plan.processes()))?;
    let mut table =
        plain(["id", "rank", "arrives", "pre-steps", "sends", "receives", "last receive"]);
    for (place, &rank) in plan.ranks().iter().enumerate() {
        let program = plan.program(place);
        let sends = program.iter().filter(|step| matches!(step, Step::Send { .. })).count();
        table.add_row([
            place.to_string(),
            rank.to_string(),
            arrivals[rank].to_string(),
            plan.ahead()[place].to_string(),
            sends.to_string(),
            (program.len() - sends).to_string(),
            last[rank].to_string(),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let elapsed: f64 = last.iter().zip(arrivals).map(|(&end, &begin)| (end - begin) as f64).sum();
    let most = last.iter().max().copied().unwrap_or(0);
    let average = elapsed / plan.processes() as f64;
    writeln!(
        out,
        "the last process ends at {most}; on average a process takes {average} from its arrival on"
    )
}
