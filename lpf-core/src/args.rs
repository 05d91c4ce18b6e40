//! What travels into and out of a section: bytes and function symbols.

use std::any::TypeId;

/// The arguments of one process of a section (the book's contract, Arguments).
///
/// `exec` hands `input` to process 0, returns process 0's `output`, and gives every process the
/// `symbols`. The functions of `hook` and `rehook` capture what they need.
#[derive(Debug, Default)]
pub struct Args<'a> {
    /// Bytes for the section; empty at every process but 0 under `exec`.
    pub input: &'a [u8],
    /// Where the section leaves its result; empty at every process but 0 under `exec`.
    pub output: &'a mut [u8],
    /// Functions that every process may call, in its own address space.
    pub symbols: &'a [Symbol],
}

impl<'a> Args<'a> {
    /// No input, no output, no functions.
    pub fn none() -> Self {
        Args::default()
    }

    /// Only input.
    pub fn input(input: &'a [u8]) -> Self {
        Args { input, ..Args::default() }
    }

    /// Input and room for output.
    pub fn in_out(input: &'a [u8], output: &'a mut [u8]) -> Self {
        Args { input, output, ..Args::default() }
    }

    /// The same arguments for a shorter time, to hand them on.
    pub fn reborrow(&mut self) -> Args<'_> {
        Args { input: self.input, output: self.output, symbols: self.symbols }
    }
}

/// A function that can be named to other processes.
///
/// It remembers its signature, so that [`get`](Symbol::get) is safe: asking for another signature
/// gives `None`. Between processes a symbol travels as (module, offset), never as an address.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    address: usize,
    /// Names the signature by a function of its own: a function has a place in its module, which
    /// travels like the symbol's own; a `TypeId` has not.
    signature: fn() -> TypeId,
}

impl Symbol {
    /// The symbol of a function pointer: `Symbol::new(square as fn(u64) -> u64)`.
    pub fn new<S: Signature>(function: S) -> Self {
        Symbol { address: function.address(), signature: TypeId::of::<S> }
    }

    /// The function, if `S` is its signature.
    pub fn get<S: Signature>(&self) -> Option<S> {
        // SAFETY: the address came from a function pointer of type S, as its TypeId says.
        (self.signature() == TypeId::of::<S>()).then(|| unsafe { S::from_address(self.address) })
    }

    fn signature(&self) -> TypeId {
        (self.signature)()
    }

    /// The address in this process.
    pub fn address(&self) -> usize {
        self.address
    }

    /// The two addresses of this process that make it up: for backends, which send their places in
    /// their modules.
    pub fn to_addresses(self) -> [usize; 2] {
        [self.address, self.signature as usize]
    }

    /// Puts a symbol together again.
    ///
    /// # Safety
    /// The addresses are, in this process, those of the same two functions of the same build that
    /// [`to_addresses`](Symbol::to_addresses) gave where the symbol was made.
    pub unsafe fn from_addresses([address, signature]: [usize; 2]) -> Self {
        let signature = std::ptr::with_exposed_provenance::<()>(signature);
        // SAFETY: the caller vouches that it is the address of such a function.
        let signature = unsafe { std::mem::transmute::<*const (), fn() -> TypeId>(signature) };
        Symbol { address, signature }
    }
}

impl PartialEq for Symbol {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address && self.signature() == other.signature()
    }
}

impl Eq for Symbol {}

mod sealed {
    pub trait Sealed {}
}

/// A function pointer type that a [`Symbol`] can hold: up to four parameters by value, or one
/// reference and up to one more.
pub trait Signature: sealed::Sealed + Copy + 'static {
    /// The function's address.
    fn address(self) -> usize;

    /// The function at `address`.
    ///
    /// # Safety
    /// `address` came from [`address`](Signature::address) of a value of this very type, in this
    /// process.
    unsafe fn from_address(address: usize) -> Self;
}

// A function that takes any reference is another type than one that takes a reference of one
// lifetime; the lint is about programs that relied on their being the same.
macro_rules! signature {
    ($(for <$l:lifetime>)? [$($generic:ident)*] $pointer:ty) => {
        #[allow(coherence_leak_check)]
        impl<$($generic: 'static),*> sealed::Sealed for $pointer {}
        #[allow(coherence_leak_check)]
        impl<$($generic: 'static),*> Signature for $pointer {
            fn address(self) -> usize {
                self as usize
            }
            unsafe fn from_address(address: usize) -> Self {
                // SAFETY: the caller vouches that the address is a function of this type.
                unsafe {
                    let function = std::ptr::with_exposed_provenance::<()>(address);
                    std::mem::transmute::<*const (), $pointer>(function)
                }
            }
        }
    };
}

signature!([R] fn() -> R);
signature!([A R] fn(A) -> R);
signature!([A B R] fn(A, B) -> R);
signature!([A B C R] fn(A, B, C) -> R);
signature!([A B C D R] fn(A, B, C, D) -> R);
signature!([R] for<'x> fn(&'x [u8]) -> R);
signature!([R] for<'x> fn(&'x mut [u8]) -> R);
signature!([R] for<'x, 'y> fn(&'x [u8], &'y mut [u8]) -> R);

#[cfg(test)]
mod tests {
    use super::*;

    fn double(x: u64) -> u64 {
        2 * x
    }

    #[test]
    fn a_symbol_gives_its_function_back_under_its_own_signature_only() {
        let symbol = Symbol::new(double as fn(u64) -> u64);
        assert_eq!(symbol.get::<fn(u64) -> u64>().map(|f| f(21)), Some(42));
        assert!(symbol.get::<fn(u32) -> u64>().is_none());
        assert!(symbol.get::<fn()>().is_none());
    }

    #[test]
    fn a_symbol_taken_apart_and_put_together_is_the_same() {
        let symbol = Symbol::new(double as fn(u64) -> u64);
        // SAFETY: this process, this symbol.
        let again = unsafe { Symbol::from_addresses(symbol.to_addresses()) };
        assert_eq!(again, symbol);
        assert_eq!(again.get::<fn(u64) -> u64>().map(|f| f(21)), Some(42));
        assert!(again.get::<fn(i64) -> u64>().is_none());
    }
}
