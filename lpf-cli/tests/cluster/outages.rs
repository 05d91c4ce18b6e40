//! A network that is interrupted for a while, or loses packets, ends no job.

use std::time::{Duration, Instant};

use super::job::{Job, between, lossy, outage};
use super::member::Story;
use super::{TRIES, VICTIMS};

/// Outages that must not be taken for a death.
const OUTAGES: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_millis(1000), Duration::from_millis(1500)];

/// After an outage.
const REST: Duration = Duration::from_secs(2);

/// An outage that this machine made longer than this than it should be says nothing.
const OVERRUN: Duration = Duration::from_millis(200);

/// Jobs that run at the same time.
struct Jobs(Vec<(Story, Job)>);

impl Jobs {
    fn start(stories: &[Story]) -> Jobs {
        let jobs: Vec<_> = stories.iter().map(|&story| (story, Job::start("tcp", story))).collect();
        jobs.iter().for_each(|(_, job)| job.await_all());
        Jobs(jobs)
    }

    fn ended(self) -> Result<(), String> {
        self.0.into_iter().try_for_each(|(story, mut job)| {
            job.ended().map_err(|complaint| format!("{}, {complaint}", story.name()))
        })
    }
}

/// Interrupts the network, and returns by how much longer than `time` it was.
fn interrupt(time: Duration, interrupt: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    interrupt();
    let overrun = begin.elapsed().saturating_sub(time);
    std::thread::sleep(REST);
    overrun
}

/// All outages, one after the other; by how much one was longer than it should be.
fn interrupt_all() -> Duration {
    let of_cable = |victim, time| interrupt(time, || outage(victim, time));
    let mut overrun = Duration::ZERO;
    // The host sees that its cable is out.
    for victim in VICTIMS {
        overrun = OUTAGES.iter().fold(overrun, |most, &time| most.max(of_cable(victim, time)));
    }
    // No host sees anything.
    let longest = OUTAGES[2];
    overrun.max(interrupt(longest, || {
        between([0, 2], "down");
        std::thread::sleep(longest);
        between([0, 2], "up");
    }))
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn an_outage_of_up_to_one_and_a_half_seconds_ends_no_job() {
    for tries in 1.. {
        let jobs = Jobs::start(&[Story::Ring, Story::Compute]);
        let overrun = interrupt_all();
        let Err(complaint) = jobs.ended() else { return };
        println!("try {tries}, an outage was {overrun:?} longer: {complaint}");
        assert!(tries < TRIES && overrun > OVERRUN, "{complaint}");
    }
}

/// As long as it lives, frames get lost.
struct Lossy;

impl Lossy {
    fn of(percent: u32) -> Lossy {
        lossy(percent);
        Lossy
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        lossy(0);
    }
}

#[test]
#[ignore = "needs the hosts of ci/cluster.sh"]
fn lost_packets_end_no_job() {
    let _lossy = Lossy::of(3);
    let jobs = Jobs::start(&[Story::Count, Story::Ring, Story::Compute]);
    std::thread::sleep(Duration::from_secs(5));
    jobs.ended().unwrap();
}
