//! The book and the README, so that `cargo test --doc` runs the code on their pages.

macro_rules! pages {
    ($($name:ident: $path:literal)*) => {
        $(
            #[doc = include_str!($path)]
            pub mod $name {}
        )*
    };
}

pages! {
    readme: "../README.md"
    introduction: "src/introduction.md"
    first_program: "src/first-program.md"
    cost_model: "src/cost-model.md"
    processes: "src/processes.md"
    supersteps: "src/supersteps.md"
    libraries: "src/libraries.md"
    errors: "src/errors.md"
    collectives: "src/collectives.md"
    collective_algorithms: "src/collective-algorithms.md"
    arrival_patterns: "src/arrival-patterns.md"
    expected_arrivals: "src/expected-arrivals.md"
    settings: "src/settings.md"
    contract: "src/contract.md"
    glossary: "src/glossary.md"
    threads: "src/threads.md"
    messages: "src/messages.md"
    channels: "src/channels.md"
    failure: "src/failure.md"
    collectives_inside: "src/collectives-inside.md"
    arrival_schedules: "src/arrival-schedules.md"
    runtime: "src/runtime.md"
    engine: "src/engine.md"
    backends_to_come: "src/backends-to-come.md"
    dependencies: "src/dependencies.md"
    mutations: "src/mutations.md"
}
