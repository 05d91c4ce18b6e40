//! The processes that MPI's launcher started: a job, whose process 0 does what the tests ask for.
//!
//! A test process that ends closes its connection, and the job ends in order. Where one of its sections
//! never ends, the job is aborted.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lpf_conformance::{PROCS, Story, allowed};
use lpf_control::plane::Beats;
use lpf_control::rendezvous::By;
use lpf_core::runtime::section;
use lpf_core::{Args, Pid, Result, Symbol};
use lpf_messages::Environment;
use lpf_messages::code::CodePlace;
use lpf_mpi::{MpiJob, MpiProcess, World, join};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::launch;

/// The words of another command than the launcher's, which starts the processes: on several hosts.
const LAUNCHER: &str = "LPF_TEST_LAUNCHER";

/// Where the tests listen, in the environment of the processes.
const MEET: &str = "LPF_TEST_MEET";

/// Nothing here waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The most tries to start the job.
const STARTS: usize = 3;

/// How long a section may go on when the tests are gone.
const AFTER_THE_END: Duration = Duration::from_secs(10);

/// A section that process 0 is to start.
#[derive(Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The function that knows the story's type.
    call: CodePlace,
    environment: Environment,
    procs: Pid,
    input: Vec<u8>,
    /// What is in the output before.
    output: Vec<u8>,
    symbols: Vec<[CodePlace; 2]>,
}

/// How it ended, and process 0's output.
#[derive(Serialize, Deserialize)]
struct Answer {
    result: Result<()>,
    output: Vec<u8>,
}

/// What process 0 calls.
type Call = fn(&mut MpiJob, &Arc<Environment>, Pid, Args<'_>) -> Result<()>;

fn call<S: Story<MpiProcess>>(
    job: &mut MpiJob,
    environment: &Arc<Environment>,
    procs: Pid,
    args: Args<'_>,
) -> Result<()> {
    // SAFETY: a value without size is read from any place that is aligned; the suite had one.
    let story: S = unsafe { std::ptr::NonNull::<S>::dangling().read() };
    job.exec(environment, procs, args, section(story), section(story))
}

fn place(address: usize) -> CodePlace {
    CodePlace::of(address).expect("a function of this program")
}

impl Asked {
    pub(crate) fn exec<S: Story<MpiProcess>>(
        environment: Environment,
        procs: Pid,
        _story: S,
        args: &Args<'_>,
    ) -> Self {
        const { assert!(size_of::<S>() == 0) };
        let places = |symbol: &Symbol| symbol.to_addresses().map(place);
        Asked {
            call: place(call::<S> as Call as usize),
            environment,
            procs,
            input: args.input.into(),
            output: args.output.to_vec(),
            symbols: args.symbols.iter().map(places).collect(),
        }
    }

    fn answer(mut self, job: &mut MpiJob) -> Answer {
        let address = |place: &CodePlace| place.address().expect("this very program");
        let symbol = |[function, signature]: &[CodePlace; 2]| {
            // SAFETY: the places of the same functions of this very program.
            unsafe { Symbol::from_addresses([address(function), address(signature)]) }
        };
        // SAFETY: the place of a function of this type, of this very program.
        let call = unsafe {
            let address = std::ptr::with_exposed_provenance::<()>(address(&self.call));
            std::mem::transmute::<*const (), Call>(address)
        };
        let symbols: Vec<Symbol> = self.symbols.iter().map(symbol).collect();
        let args = Args { input: &self.input, output: &mut self.output, symbols: &symbols };
        let result = call(job, &Arc::new(self.environment), self.procs, args);
        Answer { result, output: self.output }
    }
}

fn write<W: Serialize>(stream: &mut UnixStream, word: &W) -> io::Result<()> {
    let bytes = postcard::to_stdvec(word).expect("plain data");
    stream.write_all(&(bytes.len() as u64).to_le_bytes())?;
    stream.write_all(&bytes)
}

fn read<W: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<W> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    stream.read_exact(&mut bytes)?;
    Ok(postcard::from_bytes(&bytes).expect("what this program wrote"))
}

/// The job, as the tests see it.
struct Machine {
    launcher: Child,
    process_0: UnixStream,
}

impl Machine {
    /// Starts the job, in up to [`STARTS`] tries: Open MPI's launcher was seen stuck before its processes were in
    /// `MPI_Init`, while another launcher started. Processes that have joined wait at most `PATIENCE` for each other. Then
    /// they end, and the launcher with them.
    fn start() -> Machine {
        let meet = meeting_point();
        let listener = UnixListener::bind(&meet).expect("a socket in the temporary folder");
        listener.set_nonblocking(true).expect("plain");
        let started = (1..=STARTS).find_map(|start| {
            Machine::try_start(&meet, &listener)
                .inspect_err(|why| eprintln!("start {start} of {STARTS} of the job on MPI: {why}"))
                .ok()
        });
        let _ = std::fs::remove_file(meet);
        started.expect("a job that starts")
    }

    fn try_start(meet: &Path, listener: &UnixListener) -> std::result::Result<Machine, String> {
        let mut launcher = launcher()
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "serve", "--nocapture", "--test-threads=1"])
            .env(MEET, meet)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the launcher was found");
        let begin = Instant::now();
        loop {
            match listener.accept() {
                Ok((process_0, _)) => {
                    process_0.set_nonblocking(false).expect("plain");
                    return Ok(Machine { launcher, process_0 });
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
            }
            if let Some(status) = launcher.try_wait().expect("a process of this one's own") {
                return Err(format!("MPI's launcher ended with {status}"));
            }
            if begin.elapsed() > allowed(2 * PATIENCE) {
                let _ = launcher.kill();
                let status = launcher.wait();
                return Err(format!(
                    "the processes do not come, and the launcher was killed: {status:?}"
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask(&mut self, asked: &Asked) -> io::Result<Answer> {
        write(&mut self.process_0, asked)?;
        read(&mut self.process_0)
    }
}

/// Whether the processes run on several hosts.
pub(crate) fn is_apart() -> bool {
    std::env::var_os(LAUNCHER).is_some_and(|words| !words.is_empty())
}

fn launcher() -> Command {
    if !is_apart() {
        return launch::launcher(PROCS);
    }
    let words = std::env::var(LAUNCHER).expect("text");
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("a command"));
    command.args(words);
    command
}

fn meeting_point() -> PathBuf {
    std::env::temp_dir().join(format!("lpf-mpi-suite-{}", std::process::id()))
}

/// Runs a section on the machine, which is started by the first that asks, and after it has ended. The
/// output is filled however the section ends.
pub(crate) fn ask(asked: &Asked, output: &mut [u8]) -> Result<()> {
    static MACHINE: Mutex<Option<Machine>> = Mutex::new(None);
    let mut machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    match machine.get_or_insert_with(Machine::start).ask(asked) {
        Ok(answer) => {
            output.copy_from_slice(&answer.output);
            answer.result
        }
        Err(error) => {
            let mut ended = machine.take().expect("it was asked");
            let _ = ended.launcher.kill();
            panic!("the job on MPI has ended: {error}, {:?}", ended.launcher.wait());
        }
    }
}

/// Is a process of the machine, if the environment says so.
pub(crate) fn serve_if_asked() {
    let Some(meet) = std::env::var_os(MEET) else { return };
    let world = World::init(PATIENCE).expect("MPI");
    let mut job = join(world, By::Member, Beats::On, PATIENCE).expect("the others come");
    if job.rank() == 0 {
        let mut tests = UnixStream::connect(meet).expect("the tests listen");
        let asked = questions(tests.try_clone().expect("a second handle"));
        for asked in asked {
            let answer = asked.answer(&mut job);
            if write(&mut tests, &answer).is_err() {
                break;
            }
        }
    } else {
        job.serve().expect("process 0 ends the job in order");
    }
    job.leave();
}

/// What the tests ask for, until they are gone.
fn questions(mut tests: UnixStream) -> Receiver<Asked> {
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        while let Ok(asked) = read(&mut tests) {
            if tell.send(asked).is_err() {
                return;
            }
        }
        drop(tell);
        std::thread::sleep(AFTER_THE_END);
        eprintln!("a section goes on {AFTER_THE_END:?} after the tests have ended");
        std::process::abort();
    });
    asked
}
