//! Worked examples of all-reductions along a chain, step by step.

use lpf_collectives::arrival_pattern::chain::{Chain, Plan, Step};
use serde::Deserialize;

#[derive(Deserialize)]
struct Examples {
    cases: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    alg: String,
    pattern: String,
    tau: u64,
    arrivals: Vec<u64>,
    id_to_rank: Vec<u32>,
    pre_steps_by_id: Vec<u32>,
    last_recv_time: Vec<f64>,
    programs: Vec<Vec<(String, u32, u32, String)>>,
}

fn shown(step: Step) -> (String, u32, u32, String) {
    let (verb, peer, segment, whole) = match step {
        Step::Send { to, segment, whole } => ("send", to, segment, whole),
        Step::Receive { from, segment, whole } => ("recv", from, segment, whole),
    };
    (verb.into(), peer, segment, if whole { "override" } else { "reduce" }.into())
}

#[test]
fn the_examples_are_reproduced_step_by_step() {
    let examples: Examples = serde_json::from_str(include_str!("published/sorted.json")).unwrap();
    assert!(examples.cases.len() > 100);
    for one in examples.cases {
        let name = format!("{} {} {:?}", one.alg, one.pattern, one.arrivals);
        let chain = Chain::ALL.into_iter().find(|chain| chain.name() == one.alg).unwrap();
        let plan = Plan::new(chain, one.tau, &one.arrivals);
        assert_eq!(plan.ranks(), one.id_to_rank, "{name}");
        assert_eq!(plan.ahead(), one.pre_steps_by_id, "{name}");
        for (place, &rank) in plan.ranks().iter().enumerate() {
            let program: Vec<_> = plan.program(place).into_iter().map(shown).collect();
            assert_eq!(program, one.programs[rank as usize], "{name}, rank {rank}");
        }
        let (last, _) = plan.timeline(one.tau, &one.arrivals);
        let last: Vec<f64> = last.into_iter().map(|time| time as f64).collect();
        assert_eq!(last, one.last_recv_time, "{name}");
    }
}
