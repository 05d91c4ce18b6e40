use super::*;
use crate::simulate::Random;

fn made(instance: &Instance, scheduler: Scheduler) -> Vec<Transfer> {
    let mut all = Vec::new();
    canonical(instance, scheduler, |transfer| all.push(transfer));
    all
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
    Instance::new(n as u32, random.below(p) as u32, d, arrivals).unwrap()
}

#[test]
fn the_schedulers_make_the_same_schedules_and_right_ones() {
    let mut random = Random(1);
    for _ in 0..if cfg!(asan) { 10_000 } else { 100_000 } {
        let instance = small(&mut random);
        let linear = made(&instance, Scheduler::Linear);
        if let Err(mistake) = check(&instance, &linear) {
            panic!("{instance:?}: {mistake}");
        }
        for other in [Scheduler::Tree, Scheduler::Bits] {
            assert_eq!(linear, made(&instance, other), "{other:?} {instance:?}");
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
    for (p, n) in shapes {
        for spread in [1, 40, 4 * p] {
            let arrivals = (0..p).map(|_| random.below(spread)).collect();
            let d = 1 + random.below(4);
            let instance = Instance::new(n, random.below(p) as u32, d, arrivals).unwrap();
            let expected = Digest::of(&instance, Scheduler::Tree);
            assert_eq!(expected, Digest::of(&instance, Scheduler::Bits), "{p} {n} {spread}");
            assert_eq!(expected.combines, (p - 1) * u64::from(n));
        }
    }
}

#[test]
fn any_processor_makes_the_same_schedule_in_the_same_order() {
    let mut random = Random(3);
    for (p, n) in [(1, 1), (9, 30), (65, 64), (300, 300), (530, 40), (40, 530), (4200, 3)] {
        let arrivals = (0..p).map(|_| random.below(3 * p)).collect();
        let instance = Instance::new(n, random.below(p) as u32, 2, arrivals).unwrap();
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
        (new(2, 1, &[0, 0]), "the root is process 2, and the last is 1"),
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
