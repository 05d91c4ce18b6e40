//! Published and worked examples of Clairvoyant schedules, to the tuple.

use lpf_collectives::arrival_pattern::clairvoyant::{
    Digest, Instance, Scheduler, canonical, check,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Examples {
    instances: Vec<Example>,
}

#[derive(Deserialize)]
#[allow(non_snake_case)]
struct Example {
    name: String,
    N: u32,
    root: usize,
    d_ns: u64,
    arrivals_ns: Vec<u64>,
    count: u64,
    last_round: u64,
    fnv1a: String,
    combines: u64,
    /// Left out where there are many.
    transfers: Option<Vec<(u64, usize, usize, u32)>>,
    overwrite: Option<Vec<u8>>,
}

#[test]
fn the_examples_are_reproduced_by_every_scheduler() {
    let text = include_str!("published/clairvoyant.json");
    let examples: Examples = serde_json::from_str(text).unwrap();
    assert!(examples.instances.len() > 10);
    for one in examples.instances {
        let instance = Instance::new(one.N, one.root, one.d_ns, one.arrivals_ns).unwrap();
        for scheduler in Scheduler::ALL {
            let name = format!("{} by {}", one.name, scheduler.name());
            let mut all = Vec::new();
            canonical(&instance, scheduler, |transfer| all.push(transfer));
            check(&instance, &all).unwrap_or_else(|mistake| panic!("{name}: {mistake}"));
            let Digest { fnv1a, count, combines, last_round } = Digest::of(&instance, scheduler);
            assert_eq!(format!("{fnv1a:016x}"), one.fnv1a, "{name}");
            assert_eq!(
                (count, combines, last_round),
                (one.count, one.combines, one.last_round),
                "{name}"
            );
            let tuples = all.iter().map(|t| (t.round, t.sender, t.receiver, t.segment));
            if let Some(transfers) = &one.transfers {
                assert!(tuples.eq(transfers.iter().copied()), "{name}");
            }
            if let Some(overwrite) = &one.overwrite {
                assert!(
                    all.iter().map(|t| u8::from(t.overwrites)).eq(overwrite.iter().copied()),
                    "{name}"
                );
            }
        }
    }
}
