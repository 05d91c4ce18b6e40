//! What reductions combine with.

use bytemuck::Pod;

/// An associative operator on elements of `T`.
///
/// `a · (b · c)` and `(a · b) · c` are to be the same, up to rounding: which of them is computed is the
/// algorithm's choice, and always the same one, so that results are the same to the bit.
///
/// ```
/// use lpf_collectives::Operator;
///
/// /// The maps x -> a x + b, one after the other.
/// struct Compose;
///
/// impl Operator<[i64; 2]> for Compose {
///     fn identity(&self) -> [i64; 2] {
///         [1, 0]
///     }
///     fn combine(&self, [a, b]: [i64; 2], [c, d]: [i64; 2]) -> [i64; 2] {
///         [a * c, a * d + b]
///     }
/// }
/// ```
pub trait Operator<T: Pod> {
    /// Whether `a · b` is `b · a`: then there are more ways, and faster ones. If not, operands keep the order
    /// of their members.
    fn commutes(&self) -> bool {
        false
    }

    /// What combined with anything leaves it: what the first member gets of an exscan.
    fn identity(&self) -> T;

    /// `left · right`.
    fn combine(&self, left: T, right: T) -> T;
}

/// The sum; of integers modulo their range.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;
/// The product; of integers modulo their range.
#[derive(Clone, Copy, Debug, Default)]
pub struct Product;
/// The least. Of floating-point numbers that are no numbers, the other one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min;
/// The greatest; as [`Min`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;
/// Bit by bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct And;
/// Bit by bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Or;
/// Bit by bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Xor;

/// A value and where it is: an element for [`MinAt`] and [`MaxAt`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct At<V> {
    /// The value.
    pub value: V,
    /// Its place.
    pub place: V,
}

/// The least value with its place; of equal ones the lowest place.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinAt;
/// The greatest value with its place; of equal ones the lowest place.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxAt;

macro_rules! operator {
    ($name:ident on $($type:ty),* : $identity:expr, |$left:ident, $right:ident| $combine:expr) => {
        $(impl Operator<$type> for $name {
            fn commutes(&self) -> bool {
                true
            }

            #[inline(always)]
            fn identity(&self) -> $type {
                $identity
            }

            #[inline(always)]
            fn combine(&self, $left: $type, $right: $type) -> $type {
                $combine
            }
        })*
    };
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        operator!(Sum on $type: 0, |a, b| a.wrapping_add(b));
        operator!(Product on $type: 1, |a, b| a.wrapping_mul(b));
        operator!(Min on $type: <$type>::MAX, |a, b| a.min(b));
        operator!(Max on $type: <$type>::MIN, |a, b| a.max(b));
        operator!(And on $type: !0, |a, b| a & b);
        operator!(Or on $type: 0, |a, b| a | b);
        operator!(Xor on $type: 0, |a, b| a ^ b);
        located!($type, <$type>::MIN, <$type>::MAX);
    )*};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        operator!(Sum on $type: 0.0, |a, b| a + b);
        operator!(Product on $type: 1.0, |a, b| a * b);
        operator!(Min on $type: <$type>::INFINITY, |a, b| if b < a || a.is_nan() { b } else { a });
        operator!(Max on $type: <$type>::NEG_INFINITY, |a, b| if b > a || a.is_nan() { b } else { a });
        located!($type, <$type>::NEG_INFINITY, <$type>::INFINITY);
    )*};
}

macro_rules! located {
    ($type:ty, $least:expr, $greatest:expr) => {
        // SAFETY: two fields of one plain type: no padding.
        unsafe impl bytemuck::Zeroable for At<$type> {}
        // SAFETY: as above.
        unsafe impl Pod for At<$type> {}

        impl Operator<At<$type>> for MinAt {
            fn commutes(&self) -> bool {
                true
            }

            fn identity(&self) -> At<$type> {
                At { value: $greatest, place: $greatest }
            }

            #[inline(always)]
            fn combine(&self, a: At<$type>, b: At<$type>) -> At<$type> {
                let first = a.value < b.value || a.value == b.value && a.place <= b.place;
                if first { a } else { b }
            }
        }

        impl Operator<At<$type>> for MaxAt {
            fn commutes(&self) -> bool {
                true
            }

            fn identity(&self) -> At<$type> {
                At { value: $least, place: $greatest }
            }

            #[inline(always)]
            fn combine(&self, a: At<$type>, b: At<$type>) -> At<$type> {
                let first = a.value > b.value || a.value == b.value && a.place <= b.place;
                if first { a } else { b }
            }
        }
    };
}

integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
floats!(f32, f64);

/// The operator on slices by address, as a call's executor wants it.
///
/// With AVX2 where there is, a sum of f64 in the caches takes .011 ns a byte, without it .019 (AMD EPYC);
/// AVX-512 takes as long as AVX2. The elements' results are the same.
///
/// # Safety
/// The operands are valid for reads and `into` for writes of `bytes` bytes, whole elements, aligned; `into`
/// is one of the operands or overlaps neither.
#[inline]
pub(crate) unsafe fn on_slices<T: Pod, O: Operator<T>>(
    operator: &O,
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= WIDE && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the caller's promise, and AVX2 is there.
        return unsafe { on_slices_wide(operator, left, right, into, bytes) };
    }
    // SAFETY: the caller's promise.
    unsafe { each(operator, left, right, into, bytes) }
}

/// Shorter slices are not worth a look at what the processor can do.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 256;

/// # Safety
/// As [`on_slices`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn on_slices_wide<T: Pod, O: Operator<T>>(
    operator: &O,
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { each(operator, left, right, into, bytes) }
}

/// # Safety
/// As [`on_slices`].
#[inline(always)]
unsafe fn each<T: Pod, O: Operator<T>>(
    operator: &O,
    left: *const u8,
    right: *const u8,
    into: *mut u8,
    bytes: usize,
) {
    let Some(count) = bytes.checked_div(size_of::<T>()) else { return };
    let (left, right, into) = (left.cast::<T>(), right.cast::<T>(), into.cast::<T>());
    // SAFETY: the caller's promise; each case has slices that do not overlap.
    unsafe {
        if into.cast_const() == left {
            let right = std::slice::from_raw_parts(right, count);
            let into = std::slice::from_raw_parts_mut(into, count);
            for (into, &right) in into.iter_mut().zip(right) {
                *into = operator.combine(*into, right);
            }
        } else if into.cast_const() == right {
            let left = std::slice::from_raw_parts(left, count);
            let into = std::slice::from_raw_parts_mut(into, count);
            for (into, &left) in into.iter_mut().zip(left) {
                *into = operator.combine(left, *into);
            }
        } else {
            let left = std::slice::from_raw_parts(left, count);
            let right = std::slice::from_raw_parts(right, count);
            let into = std::slice::from_raw_parts_mut(into, count);
            for ((into, &left), &right) in into.iter_mut().zip(left).zip(right) {
                *into = operator.combine(left, right);
            }
        }
    }
}

/// What a sum of f64 takes here, nanoseconds per byte of one vector: the least of several.
pub fn combine_ns_per_byte() -> f64 {
    const WORDS: usize = 4096;
    let (left, right, mut into) = (vec![1.5f64; WORDS], vec![2.5f64; WORDS], vec![0f64; WORDS]);
    let bytes = WORDS * size_of::<f64>();
    let once = |into: &mut [f64]| {
        let begin = std::time::Instant::now();
        // SAFETY: three slices of as many elements.
        unsafe {
            let (left, right) = (left.as_ptr().cast(), right.as_ptr().cast());
            on_slices::<f64, Sum>(&Sum, left, right, into.as_mut_ptr().cast(), bytes);
        }
        std::hint::black_box(into);
        begin.elapsed().as_secs_f64() * 1e9 / bytes as f64
    };
    (0..8).map(|_| once(&mut into)).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_combined_element_by_element_wherever_the_result_goes() {
        for len in [0usize, 1, 3, 31, 32, 33, 1000] {
            let left: Vec<i32> = (0..len as i32).map(|x| x * 7 - 50).collect();
            let right: Vec<i32> = (0..len as i32).map(|x| x * x - 900).collect();
            let expected: Vec<i32> = left.iter().zip(&right).map(|(&a, &b)| a.max(b)).collect();
            let bytes = len * 4;
            let (mut apart, mut to_left, mut to_right) =
                (vec![0; len], left.clone(), right.clone());
            // SAFETY: slices of one length.
            unsafe {
                let (l, r) = (left.as_ptr().cast(), right.as_ptr().cast());
                on_slices::<i32, Max>(&Max, l, r, apart.as_mut_ptr().cast(), bytes);
                let into = to_left.as_mut_ptr().cast::<u8>();
                on_slices::<i32, Max>(&Max, into, r, into, bytes);
                let into = to_right.as_mut_ptr().cast::<u8>();
                on_slices::<i32, Max>(&Max, l, into, into, bytes);
            }
            assert_eq!([apart, to_left, to_right], [expected.clone(), expected.clone(), expected]);
        }
    }

    #[test]
    fn of_equal_values_the_lowest_place_is_named() {
        let at = |value: f64, place: f64| At { value, place };
        assert_eq!(MinAt.combine(at(1.0, 7.0), at(1.0, 3.0)), at(1.0, 3.0));
        assert_eq!(MaxAt.combine(at(2.0, 7.0), at(1.0, 3.0)), at(2.0, 7.0));
        let identity: At<f64> = MaxAt.identity();
        assert_eq!(MaxAt.combine(identity, at(-5.0, 2.0)), at(-5.0, 2.0));
        assert_eq!(Min.combine(f64::NAN, 1.0), 1.0);
        assert_eq!(Min.combine(1.0, f64::NAN), 1.0);
    }
}
