//! The network under MPI's own launcher: this program starts itself in groups of processes, each of
//! which lives through all stories together with the others, every story on a network of its own.

mod breaking;
mod giving_up;
mod launch;
mod memory;
mod progress;
mod random;
mod support;
mod traffic;
mod worlds;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lpf_mpi::World;
use support::{APART, Net, PATIENCE, new_network};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// What is told, and who tells it.
type Story = (&'static str, fn(&mut Net));

const STORIES: &[Story] = &[
    ("equal tags arrive in order", traffic::equal_tags_arrive_in_order),
    ("what comes before its receive waits for it", traffic::what_comes_early_waits),
    ("tags and senders are told apart", traffic::tags_and_senders_are_told_apart),
    ("contexts and channels have all their bits", traffic::contexts_and_channels_have_all_bits),
    ("messages without bytes", traffic::messages_without_bytes),
    ("every length around the limits", traffic::every_length_around_the_limits),
    ("many pieces, cut in other places", traffic::many_pieces_cut_in_other_places),
    ("many pieces of one length", traffic::many_pieces_of_one_length),
    ("64 MiB both ways at once", traffic::large_both_ways_at_once),
    ("a process sends to itself", traffic::to_oneself),
    ("a flood is kept", traffic::a_flood_is_kept),
    ("a long copy leaves by itself", traffic::a_long_copy_leaves_by_itself),
    ("who asks about one message moves all others", traffic::who_asks_about_one_moves_all),
    ("random traffic arrives exactly", random::random_traffic_arrives_exactly),
    ("a steady state allocates nothing", memory::a_steady_state_allocates_nothing),
    ("a receive that nobody answers is cancelled", giving_up::an_unmatched_receive_is_cancelled),
    ("what goes in parts is given up at once", giving_up::what_goes_in_parts_is_given_up_at_once),
    ("a finished ticket may be cancelled", giving_up::a_finished_ticket_may_be_cancelled),
    ("a body under way ends or is said not to be quiet", giving_up::a_body_under_way),
    ("a packed body is given up at once", giving_up::a_packed_body_is_given_up_at_once),
    ("what an ended context left is dropped", giving_up::what_an_ended_context_left_is_dropped),
    ("what is given up late is dropped", giving_up::what_is_given_up_late_is_dropped_at_the_end),
    ("a dropped network lets copies leave", giving_up::a_dropped_network_lets_copies_leave),
    ("a message that does not fit breaks with its sender", breaking::a_message_that_does_not_fit),
    ("a long one that does not fit does so, too", breaking::a_long_message_that_does_not_fit),
    ("no process has such a rank", breaking::no_process_has_such_a_rank),
    ("a spent ticket is an error", breaking::a_spent_ticket_is_an_error),
    ("nobody calls MPI after the switch", breaking::nobody_calls_mpi_after_the_switch),
];

/// Stories that end with a process on its own; the job is over then.
const LAST_STORIES: &[Story] =
    &[("who does not come is not waited for", worlds::who_does_not_come_is_not_waited_for)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child(&arguments[1], arguments.get(2).map_or("", String::as_str)),
        // What the test runner of cargo asks of a test.
        Some("--list") => {}
        _ => {
            let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
            let mut jobs: Vec<_> = (1..=4).map(|processes| (processes, "stories")).collect();
            jobs.push((3, "apart"));
            jobs.push((3, "last"));
            jobs.extend(worlds::OF_PROGRAMS.map(|(name, _)| (1, name)));
            // 7 GB, and a minute.
            if std::env::var_os("LPF_TEST_LARGE").is_some() {
                jobs.push((2, "large"));
            }
            if std::env::var_os("LPF_TEST_PROGRESS").is_some() {
                jobs = vec![(2, "progress")];
            }
            launch::all(jobs, filter.map_or("", String::as_str));
        }
    }
}

/// One of the processes of a job.
fn child(job: &str, filter: &str) {
    let story = Arc::new(Mutex::new(("beginning".to_string(), Instant::now())));
    watch(story.clone());
    if let Some((name, play)) = worlds::OF_PROGRAMS.iter().find(|(name, _)| *name == job) {
        let told = name.contains(filter).then(play).is_some();
        return println!("told {}", usize::from(told));
    }
    let mut world = World::init(PATIENCE).unwrap();
    let (rank, size) = (world.rank(), world.size());
    let tell = |name: &str| {
        *story.lock().unwrap() = (format!("process {rank} of {size}: {name}"), Instant::now());
    };
    let stories: Vec<Story> = match job {
        "stories" => STORIES.to_vec(),
        "apart" => {
            APART.store(true, Relaxed);
            STORIES.to_vec()
        }
        "last" => LAST_STORIES.to_vec(),
        "large" => vec![("more than 2^31 bytes", traffic::more_than_32_bits_can_count)],
        "progress" => vec![("who drives the network", progress::who_drives)],
        _ => panic!("no job {job}"),
    };
    if job == "stories" {
        tell("worlds");
        worlds::bytes_are_broadcast(&mut world);
        worlds::processes_of_a_host_are_counted(&mut world);
        worlds::an_error_handler_is_left_as_it_was();
    }
    let mut told = 0;
    for (name, play) in stories.iter().filter(|(name, _)| name.contains(filter)) {
        tell(name);
        let begin = Instant::now();
        let mut net = new_network();
        play(&mut net);
        if job != "last" {
            net.finish(PATIENCE).unwrap();
        }
        told += 1;
        if rank == 0 {
            println!("  {size} processes: {name} ({:.0?})", begin.elapsed());
        }
    }
    tell("the end");
    if rank == 0 {
        println!("told {told}");
    }
    if job == "last" {
        // MPI is waited for no more. A launcher ends the others then, and what they have printed meanwhile is
        // lost.
        std::thread::sleep(Duration::from_millis(if rank == 0 { 500 } else { 3000 }));
        std::process::exit(0);
    }
    world.finish(PATIENCE).unwrap();
}

/// Ends a story that does not end.
fn watch(story: Arc<Mutex<(String, Instant)>>) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let (name, since) = story.lock().unwrap().clone();
            if since.elapsed() > 2 * PATIENCE {
                eprintln!("{name}: no end after {:?}", since.elapsed());
                std::process::abort();
            }
        }
    });
}
