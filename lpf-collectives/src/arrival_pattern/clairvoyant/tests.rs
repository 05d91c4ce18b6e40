mod listing;
mod tree;

use super::*;
use crate::simulate::Random;

fn made(instance: &Instance, scheduler: Scheduler) -> Vec<Transfer> {
    let mut all = Vec::new();
    canonical(instance, scheduler, |transfer| all.push(transfer));
    all
}

/// By the paper's segment tree.
fn of_tree(instance: &Instance) -> Vec<Transfer> {
    let mut all = Vec::new();
    tree::schedule(instance, &mut |transfer| all.push(transfer));
    all.sort_unstable();
    all
}

/// All schedulers, and the segment tree, make this schedule.
#[track_caller]
fn all_make(right: &[Transfer], instance: &Instance) {
    for scheduler in Scheduler::ALL {
        assert_eq!(right, made(instance, scheduler), "{scheduler:?} {instance:?}");
    }
    assert_eq!(right, of_tree(instance), "segment tree {instance:?}");
}

/// With many that arrive at the same time, or exactly a round later.
fn small(random: &mut Random) -> Instance {
    let p = 1 + random.below(12);
    let n = match random.below(30) {
        0 => 63 + random.below(3),
        _ => random.below(12),
    };
    let d = match random.below(10) {
        0 => 1,
        1 => 1 << 61,
        _ => 1 + random.below(8),
    };
    let arrivals = (0..p).map(|_| random.below(30)).collect();
    Instance::new(n as u32, random.below(p) as usize, d, arrivals).unwrap()
}

#[test]
fn the_schedulers_make_the_same_schedules_and_right_ones() {
    let mut random = Random(1);
    for _ in 0..if cfg!(asan) { 10_000 } else { 100_000 } {
        let instance = small(&mut random);
        let right = listing::schedule(&instance);
        if let Err(mistake) = check(&instance, &right) {
            panic!("{instance:?}: {mistake}");
        }
        all_make(&right, &instance);
    }
}

/// What comes a round time later for all is the same schedule; where it does for those who come much later alone, all that
/// they take part in is a round later.
#[test]
fn times_may_be_as_late_as_can_be() {
    let mut random = Random(4);
    for _ in 0..if cfg!(asan) { 500 } else { 4_000 } {
        let early = small(&mut random);
        let (d, most) = (early.round_time(), MOST - 1 - 30);
        let with = |arrivals| {
            let root = early.root();
            Instance::new(early.segments(), root, d, arrivals).unwrap()
        };
        // All of them, where 30 is the latest there is.
        let later = most / d * d;
        let right = listing::schedule(&early);
        let late = with(early.arrivals().iter().map(|time| time + later).collect());
        all_make(&right, &late);
        // Some of them, so many rounds after the others, who are through with what they can do long before.
        const ROUNDS: u64 = 400;
        let Some(more) = (most / d).checked_sub(ROUNDS) else { continue };
        let after = |rounds: u64| {
            let gap = |rank| if rank % 3 == 0 { rounds * d } else { 0 };
            let times = early.arrivals().iter().enumerate();
            with(times.map(|(rank, time)| time + gap(rank)).collect())
        };
        let mut right = listing::schedule(&after(ROUNDS));
        let are_late = |one: &&mut Transfer| one.round > ROUNDS / 2;
        right.iter_mut().filter(are_late).for_each(|one| one.round += more);
        let late = after(ROUNDS + more);
        all_make(&right, &late);
    }
    // A round time that is the longest there is: all take part in the first round, or one alone does not.
    for arrivals in [vec![0, MOST - 2, 5, MOST - 1], vec![MOST - 1; 5], vec![MOST - 1, 0]] {
        for root in 0..arrivals.len() {
            let instance = Instance::new(7, root, MOST - 1, arrivals.clone()).unwrap();
            all_make(&listing::schedule(&instance), &instance);
        }
    }
}

#[test]
fn columns_and_rows_of_many_words_make_no_difference() {
    let mut random = Random(2);
    let shapes = [
        (65, 3),
        (3, 65),
        (511, 20),
        (512, 30),
        (513, 30),
        (20, 1100),
        (1100, 20),
        (600, 520),
        (1100, 1030),
        (4200, 5),
        (5, 4200),
    ];
    // Under the address sanitizer the long ones take half a minute.
    let is_short = |&(p, n): &(u64, u32)| !cfg!(asan) || p * u64::from(n) < 100_000;
    for (p, n) in shapes.into_iter().filter(is_short) {
        for spread in [1, 40, 4 * p] {
            let arrivals = (0..p).map(|_| random.below(spread)).collect();
            let d = 1 + random.below(4);
            let instance = Instance::new(n, random.below(p) as usize, d, arrivals).unwrap();
            let mut expected = Digest::default();
            of_tree(&instance).iter().for_each(|transfer| expected.add(transfer));
            assert_eq!(expected, Digest::of(&instance, Scheduler::Bits), "{p} {n} {spread}");
            assert_eq!(expected.combines, (p - 1) * u64::from(n));
            if p * u64::from(n) < 1000 {
                assert_eq!(listing::schedule(&instance), made(&instance, Scheduler::Bits));
            }
        }
    }
}

#[test]
fn any_processor_makes_the_same_schedule_in_the_same_order() {
    let mut random = Random(3);
    for (p, n) in [(1, 1), (9, 30), (65, 64), (300, 300), (530, 40), (40, 530), (4200, 3)] {
        let arrivals = (0..p).map(|_| random.below(3 * p)).collect();
        let instance = Instance::new(n, random.below(p) as usize, 2, arrivals).unwrap();
        let (mut here, mut anywhere) = (Vec::new(), Vec::new());
        Scheduler::Bits.schedule(&instance, |transfer| here.push(transfer));
        bits::portable(&instance, &mut |transfer| anywhere.push(transfer));
        assert!(here == anywhere, "{p} {n}");
    }
}

#[test]
fn what_is_no_instance_is_refused_in_a_sentence() {
    let new = |root, d, arrivals: &[u64]| Instance::new(1, root, d, arrivals.to_vec());
    for (wrong, said) in [
        (new(0, 1, &[]), "at least one process"),
        (new(2, 1, &[0, 0]), "the root is process 2, but the last process is 1"),
        (new(0, 0, &[0]), "a round takes 0 ns"),
        (new(0, MOST, &[0]), "a round takes 4611686018427387904 ns"),
        (new(0, 1, &[0, MOST]), "process 1 arrives at 4611686018427387904 ns"),
    ] {
        let why = wrong.unwrap_err().to_string();
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn a_schedule_that_is_changed_is_no_schedule() {
    let instance = Instance::new(6, 1, 10, vec![0, 3, 15, 40, 2, 2, 90, 15]).unwrap();
    let right = made(&instance, Scheduler::Bits);
    assert_eq!(check(&instance, &right), Ok(()));
    for at in 0..right.len() {
        let mut others = Vec::new();
        let mut change = |f: &dyn Fn(&mut Transfer)| {
            let mut all = right.clone();
            f(&mut all[at]);
            all.sort_unstable();
            others.push(all);
        };
        change(&|t| t.overwrites = !t.overwrites);
        change(&|t| t.sender = t.receiver);
        change(&|t| t.segment = (t.segment + 1) % 6);
        change(&|t| t.round = 0);
        change(&|t| t.receiver = 6);
        let mut less = right.clone();
        less.remove(at);
        others.push(less);
        for other in others.iter().filter(|other| **other != right) {
            assert!(check(&instance, other).is_err(), "{:?} is {other:?}", right[at]);
        }
    }
}
