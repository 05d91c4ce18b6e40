//! Processes of this program beside the one that runs the tests.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use lpf_conformance::{Hooked, Story};
use lpf_control::rendezvous::{Meeting, Secret, bind_first};
use lpf_core::{Args, Pid, run_section};
use lpf_messages::Environment;
use lpf_messages::code::CodePlace;
use lpf_tcp::{TcpJob, TcpProcess};
use serde::{Deserialize, Serialize};

/// What a member is to do, in its environment.
const ROLE: &str = "LPF_TEST_ROLE";

/// Where members run: other hosts, with commas, of which member r runs on the one number r modulo their
/// count, this process on the first.
const HOSTS: &str = "LPF_TEST_HOSTS";

/// The words that a host's name and a command follow, to run that there.
const ON_HOST: &str = "LPF_TEST_ON_HOST";

/// The address of the first host.
const FIRST: &str = "LPF_TEST_FIRST_HOST";

/// A variable of the tests' environment that tells of a cluster.
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Whether members run on several hosts.
pub(crate) fn are_apart() -> bool {
    told(HOSTS).is_some()
}

/// This program, to be started where member `rank` runs.
fn program(rank: Pid) -> Command {
    let program = std::env::current_exe().expect("this program");
    let Some(hosts) = told(HOSTS) else { return Command::new(program) };
    let hosts: Vec<_> = hosts.split(',').collect();
    let on_host = told(ON_HOST).expect("what runs a command on a host");
    let mut words = on_host.split_whitespace();
    let mut command = Command::new(words.next().expect("a command"));
    command.args(words).arg(hosts[rank % hosts.len()]).arg(program);
    command
}

/// What the members of a team do.
#[derive(Clone)]
pub(crate) enum Role {
    Serve,
    Hook { call: CodePlace, environment: Environment, inputs: Vec<Vec<u8>>, output_bytes: usize },
}

#[derive(Serialize, Deserialize)]
struct Asked {
    address: String,
    secret: Option<String>,
    rank: Pid,
    size: Pid,
    hook: Option<AskedHook>,
}

#[derive(Serialize, Deserialize)]
struct AskedHook {
    call: CodePlace,
    environment: Environment,
    input: Vec<u8>,
    output_bytes: usize,
    answer: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    error: Option<String>,
    output: Vec<u8>,
}

type Call = fn(&mut TcpJob, Environment, &[u8], usize) -> Hooked;

/// Hooks as one member of a job.
pub(crate) fn hook_here(
    job: &mut TcpJob,
    environment: Environment,
    input: &[u8],
    output_bytes: usize,
    story: impl Story<TcpProcess>,
) -> Hooked {
    let mut output = vec![0; output_bytes];
    let args = Args::in_out(input, &mut output);
    let result = job.hook(environment, |process| run_section(process, |ctx| story(ctx, args)));
    Hooked { result: result.map_err(|error| error.to_string()), output }
}

fn call<S: Story<TcpProcess>>(
    job: &mut TcpJob,
    environment: Environment,
    input: &[u8],
    bytes: usize,
) -> Hooked {
    // SAFETY: a value without size is read from any place that is aligned; the suite had one.
    let story: S = unsafe { std::ptr::NonNull::<S>::dangling().read() };
    hook_here(job, environment, input, bytes, story)
}

impl Role {
    pub(crate) fn hook<S: Story<TcpProcess>>(
        environment: Environment,
        inputs: &[Vec<u8>],
        output_bytes: usize,
        _story: S,
    ) -> Self {
        const { assert!(size_of::<S>() == 0) };
        let call = CodePlace::of(call::<S> as Call as usize).expect("a function of this program");
        Role::Hook { call, environment, inputs: inputs.to_vec(), output_bytes }
    }
}

/// Members that were started.
pub(crate) struct Team {
    children: Vec<(Child, PathBuf)>,
}

impl Team {
    /// Starts `size - 1` members and joins them as number 0.
    pub(crate) fn start(size: Pid, role: Role, is_sealed: bool) -> (Team, TcpJob) {
        let first = told(FIRST).unwrap_or("127.0.0.1".into());
        let listener = bind_first(&first).expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let secret = (is_sealed || are_apart()).then(|| Secret::random().expect("random bytes"));
        let asked = |rank| Asked {
            address: address.clone(),
            secret: secret.as_ref().map(|secret| secret.text().into()),
            rank,
            size,
            hook: None,
        };
        let children = (1..size).map(|rank| member(asked(rank), &role)).collect();
        let mut meeting = Meeting::new(address, 0, size);
        meeting.secret = secret;
        meeting.seal_data = is_sealed;
        meeting.listener = Some(listener);
        let job = lpf_tcp::job(meeting.join().expect("the members come")).expect("a network");
        (Team { children }, job)
    }

    /// What the members of a hook left, who end with the job.
    pub(crate) fn outcomes(mut self, job: TcpJob) -> Vec<Hooked> {
        for (_, answer) in &self.children {
            while !answer.exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        job.leave();
        let all = self.children.iter_mut().map(|(child, answer)| {
            let status = child.wait().expect("a member of this process's own");
            assert!(status.success(), "a member ended with {status}");
            let bytes = std::fs::read(&*answer).expect("the member's answer");
            let _ = std::fs::remove_file(answer);
            let Answer { error, output } = postcard::from_bytes(&bytes).expect("an answer");
            Hooked { result: error.map_or(Ok(()), Err), output }
        });
        all.collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn member(asked: Asked, role: &Role) -> (Child, PathBuf) {
    let (port, rank) = (asked.address.rsplit(':').next().unwrap_or(""), asked.rank);
    let answer = std::env::temp_dir().join(format!("lpf-suite-{port}-{rank}"));
    let hook = match role {
        Role::Serve => None,
        Role::Hook { call, environment, inputs, output_bytes } => Some(AskedHook {
            call: call.clone(),
            environment: environment.clone(),
            input: inputs[rank].clone(),
            output_bytes: *output_bytes,
            answer: answer.clone(),
        }),
    };
    let asked = Asked { hook, ..asked };
    let bytes = postcard::to_stdvec(&asked).expect("plain data");
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let child = program(rank)
        .args(["--exact", "serve", "--nocapture", "--test-threads=1"])
        .env(ROLE, text)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    (child.expect("another process"), answer)
}

/// Does what the environment asks for.
pub(crate) fn serve_if_asked() {
    let Ok(text) = std::env::var(ROLE) else { return };
    let bytes: Vec<u8> = (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect();
    let asked: Asked = postcard::from_bytes(&bytes).expect("what this program wrote");
    let mut meeting = Meeting::new(asked.address, asked.rank, asked.size);
    meeting.secret = asked.secret.map(|text| Secret::new(text).expect("a secret's text"));
    let mut job = lpf_tcp::job(meeting.join().expect("process 0 waits")).expect("a network");
    let Some(hook) = asked.hook else {
        // A test that ends ends its servers, in whatever way.
        let _ = job.serve();
        return job.leave();
    };
    let address = hook.call.address().expect("this very program");
    // SAFETY: the place of a function of this type, of this very program.
    let call = unsafe {
        std::mem::transmute::<*const (), Call>(std::ptr::with_exposed_provenance(address))
    };
    let hooked = call(&mut job, hook.environment, &hook.input, hook.output_bytes);
    let answer = Answer { error: hooked.result.err(), output: hooked.output };
    // Whole as soon as it is there.
    let part = hook.answer.with_extension("part");
    std::fs::write(&part, postcard::to_stdvec(&answer).expect("plain data")).expect("a file");
    std::fs::rename(part, hook.answer).expect("the same folder");
    // Whoever has failed stays until all have returned: others must not take it for dead.
    let _ = job.serve();
    job.leave();
}
