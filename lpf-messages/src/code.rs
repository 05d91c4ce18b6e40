//! Functions between processes: an address is a place in a module, and the module has a name.
//!
//! Two processes of one program have its code at different addresses. A function travels as the build
//! id of its module and its offset there. If the linker wrote no build id, a hash of the module's
//! read-only segments replaces it; randomised addresses do not change that. Another build has
//! another name, so that no process calls a wrong address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// A place in a module of this program or of another process of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    module: Vec<u8>,
    offset: u64,
}

struct Module {
    base: usize,
    /// Loaded segments: where, how long, whether it is read-only.
    segments: Vec<(usize, usize, bool)>,
    build_id: Option<Vec<u8>>,
}

impl Module {
    fn holds(&self, address: usize) -> bool {
        self.segments.iter().any(|&(start, bytes, _)| address.wrapping_sub(start) < bytes)
    }

    /// Its build id, else a hash of what is in it and never written.
    fn name(&self) -> Result<Vec<u8>, String> {
        if let Some(build_id) = &self.build_id {
            return Ok(build_id.clone());
        }
        static NAMES: Mutex<Option<HashMap<usize, Vec<u8>>>> = Mutex::new(None);
        let mut names = NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(match names.get_or_insert_default().entry(self.base) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => unknown.insert(self.hash()?).clone(),
        })
    }

    /// Read through the kernel: between its objects a segment has bytes that belong to none, which
    /// no reference may cover.
    fn hash(&self) -> Result<Vec<u8>, String> {
        let failed = |error| format!("a module without build id cannot be read: {error}");
        let memory = File::open("/proc/self/mem").map_err(failed)?;
        let mut hash = [0xcbf2_9ce4_8422_2325_u64, 0x9e37_79b9_7f4a_7c15];
        let mut some = [0; 1 << 16];
        for &(start, bytes, _) in self.segments.iter().filter(|(.., read_only)| *read_only) {
            for at in (0..bytes).step_by(some.len()) {
                let some = &mut some[..(bytes - at).min(1 << 16)];
                memory.read_exact_at(some, (start + at) as u64).map_err(failed)?;
                for (nth, word) in some.chunks(8).enumerate() {
                    let mut eight = [0; 8];
                    eight[..word.len()].copy_from_slice(word);
                    let lane = &mut hash[nth % 2];
                    *lane = (lane.rotate_left(5) ^ u64::from_le_bytes(eight))
                        .wrapping_mul(0x517c_c1b7_2722_0a95);
                }
            }
        }
        Ok(hash.iter().flat_map(|lane| lane.to_le_bytes()).collect())
    }
}

/// The modules that are loaded.
fn modules() -> Vec<Module> {
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _bytes: libc::size_t,
        modules: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the loader's own structure, and the vector that `modules` handed it.
        let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
        let base = info.dlpi_addr as usize;
        let mut module = Module { base, segments: Vec::new(), build_id: None };
        for at in 0..info.dlpi_phnum as usize {
            // SAFETY: as many headers as the loader says.
            let header = unsafe { &*info.dlpi_phdr.add(at) };
            let start = base.wrapping_add(header.p_vaddr as usize);
            let bytes = header.p_memsz as usize;
            match header.p_type {
                libc::PT_LOAD => {
                    let read_only = header.p_flags & libc::PF_W == 0;
                    module.segments.push((start, bytes, read_only));
                }
                libc::PT_NOTE => {
                    // SAFETY: notes are loaded and never written.
                    let notes = unsafe {
                        let start = std::ptr::with_exposed_provenance::<u8>(start);
                        std::slice::from_raw_parts(start, bytes)
                    };
                    module.build_id = module.build_id.take().or_else(|| build_id(notes));
                }
                _ => {}
            }
        }
        modules.push(module);
        0
    }
    let mut modules = Vec::new();
    // SAFETY: the callback gets the vector back, and nobody else has it meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut modules).cast()) };
    modules
}

/// The build id among a module's notes.
fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    const BUILD_ID: u32 = 3;
    while notes.len() >= 12 {
        let word = |at: usize| {
            u32::from_ne_bytes([notes[at], notes[at + 1], notes[at + 2], notes[at + 3]])
        };
        let (name, id, kind) = (word(0) as usize, word(4) as usize, word(8));
        let id_at = 12 + name.next_multiple_of(4);
        let end = id_at.checked_add(id)?;
        if kind == BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" {
            return notes.get(id_at..end).map(<[u8]>::to_vec);
        }
        notes = notes.get(end.next_multiple_of(4)..)?;
    }
    None
}

impl CodePlace {
    /// The place of an address of this process.
    ///
    /// # Errors
    /// If no module has it (a function made at run time), or if its module has no name.
    pub fn of(address: usize) -> Result<Self, String> {
        let modules = modules();
        let module = modules.iter().find(|module| module.holds(address));
        let module = module.ok_or("a function that belongs to no module cannot travel")?;
        Ok(CodePlace { module: module.name()?, offset: (address - module.base) as u64 })
    }

    /// The address of the place in this process.
    ///
    /// # Errors
    /// If this process has no such module.
    pub fn address(&self) -> Result<usize, String> {
        let modules = modules();
        let module = modules.iter().find(|module| {
            module.holds(module.base.wrapping_add(self.offset as usize))
                && module.name().is_ok_and(|name| name == self.module)
        });
        module.map(|module| module.base + self.offset as usize).ok_or_else(|| {
            "this process runs another build of the program than the one that began the section: \
             start the same program file everywhere"
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_again_by_its_place() {
        let address = a_function_is_found_again_by_its_place as fn() as usize;
        let place = CodePlace::of(address).unwrap();
        assert_eq!(place.address(), Ok(address));
        let library = CodePlace::of(libc::getpid as unsafe extern "C" fn() -> i32 as usize);
        assert_eq!(
            library.unwrap().address(),
            Ok(libc::getpid as unsafe extern "C" fn() -> i32 as usize)
        );
    }

    #[test]
    fn what_is_in_no_module_does_not_travel_and_another_build_is_refused() {
        assert!(CodePlace::of(8).is_err());
        let mut place = CodePlace::of(build_id as fn(&'static [u8]) -> _ as usize).unwrap();
        place.module[0] ^= 1;
        assert!(place.address().is_err());
    }

    #[test]
    fn a_module_without_build_id_has_a_name_too() {
        let mut module =
            modules().into_iter().find(|m| m.holds(modules as fn() -> _ as usize)).unwrap();
        module.build_id = None;
        assert_eq!(module.name().map(|name| name.len()), Ok(16));
        assert_eq!(module.name(), module.hash());
    }
}
