//! Says in one sentence what is missing, where the bindings' own build scripts would panic at length.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(dead_code, reason = "the rest is of the library")]
#[path = "search.rs"]
mod search;

const WHAT_TO_DO: &str = "install them (Debian, Ubuntu: `apt install libopenmpi-dev openmpi-bin \
    libclang-dev`, or `apt install libmpich-dev mpich libclang-dev`), or name them in MPICC and \
    LIBCLANG_PATH";

/// Fails a build that would fail later, and would not say why.
pub fn check() {
    println!("cargo::rerun-if-env-changed=LIBCLANG_PATH");
    // Elsewhere they are looked for in other ways.
    if !cfg!(target_os = "linux") {
        return;
    }
    let mpi = search::probe();
    let missing = match (&mpi, libclang_is_there()) {
        (Ok(_), true) => return,
        (Err(_), true) => "MPI (its compiler mpicc, and mpi.h)",
        (Ok(_), false) => "libclang",
        (Err(_), false) => "MPI (its compiler mpicc, and mpi.h) and libclang",
    };
    println!("cargo::error=the feature `mpi` needs {missing} to build: {WHAT_TO_DO}");
    // What was tried, for who knows that they are there: cargo shows it with -vv.
    mpi.err().into_iter().flatten().for_each(|tried| println!("{tried}"));
}

/// As the bindings look for it: where it is said to be, or in the usual folders.
fn libclang_is_there() -> bool {
    if let Some(path) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        return path.is_file() || holds_libclang(&path);
    }
    let config = env::var_os("LLVM_CONFIG_PATH").unwrap_or_else(|| "llvm-config".into());
    let llvm = Command::new(config).arg("--prefix").output().ok();
    let llvm = llvm.map(|out| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()));
    let variables = ["LD_LIBRARY_PATH", "LIBRARY_PATH"].iter().filter_map(env::var_os);
    let named: Vec<PathBuf> =
        variables.flat_map(|list| env::split_paths(&list).collect::<Vec<_>>()).collect();
    named.iter().any(|folder| holds_libclang(folder))
        || llvm.is_some_and(|llvm| llvm.is_absolute() && is_below(&llvm, 1))
        || ["/usr/lib", "/usr/lib64", "/usr/local"].iter().any(|root| is_below(Path::new(root), 3))
}

/// Whether libclang is in a folder or in those below it, so many levels deep.
fn is_below(folder: &Path, levels: usize) -> bool {
    if holds_libclang(folder) {
        return true;
    }
    let Ok(entries) = fs::read_dir(folder) else { return false };
    levels > 0
        && entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .any(|path| path.is_dir() && is_below(&path, levels - 1))
}

fn holds_libclang(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    // A link may lead nowhere: the library is in a package of its own.
    entries.filter_map(Result::ok).filter(|entry| entry.path().is_file()).any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // libclang.so and libclang-14.so, with or without a version behind; none of its sisters.
        name.strip_prefix("libclang").is_some_and(|rest| {
            let rest =
                rest.trim_start_matches(|c: char| c == '-' || c == '.' || c.is_ascii_digit());
            rest == "so" || rest.starts_with("so.")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libclang_is_not_one_of_its_sisters() {
        let folder = env::temp_dir().join(format!("lpf-libclang-{}", std::process::id()));
        let below = folder.join("llvm/lib");
        fs::create_dir_all(&below).unwrap();
        for name in ["libclang-cpp.so.14", "libclangBasic.so", "libclang-14.a", "clang.so"] {
            fs::write(below.join(name), []).unwrap();
            assert!(!is_below(&folder, 3), "{name}");
        }
        for name in ["libclang.so", "libclang-14.so", "libclang.so.1", "libclang-14.so.14.0.6"] {
            let file = below.join(name);
            fs::write(&file, []).unwrap();
            assert!(is_below(&folder, 2) && !is_below(&folder, 1), "{name}");
            fs::remove_file(file).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", below.join("libclang.so")).unwrap();
        assert!(!is_below(&folder, 3));
        fs::remove_dir_all(folder).unwrap();
    }
}
