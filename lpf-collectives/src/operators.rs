//! The operators of reductions.

use std::cmp::Ordering;
use std::fmt;

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
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine elements of type `{T}`",
    label = "expected an operator on `{T}`",
    note = "an operator is a value of a type with `impl Operator<{T}>`, which also gives the identity; a closure is not an operator",
    note = "`Sum`, `Product`, `Min` and `Max` combine numbers, `And`, `Or` and `Xor` integers, `MinAt` and `MaxAt` elements of type `At`; all of them also arrays of these"
)]
pub trait Operator<T: Pod> {
    /// Whether `a · b` is `b · a`: then there are more and faster algorithms. If not, operands keep the order
    /// of their members.
    fn commutes(&self) -> bool {
        false
    }

    /// The element that does not change another when it is combined with it. The first member of an exscan gets it.
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
/// The least value. Of floating-point values, -0 is less than +0, and NaN loses against every number: the result is
/// NaN only if all operands are. So it has the same bits for any order of operands. The identity is
/// positive infinity, against which NaN loses, too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min;
/// The greatest value, by the rules of [`Min`]. The identity is negative infinity.
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

/// A value and its position: an element for [`MinAt`] and [`MaxAt`]. It has 16 bytes.
///
/// ```
/// use lpf_collectives::{At, MinAt, Operator};
///
/// let least = MinAt.combine(At::new(f64::NAN, 0), At::new(2.5, 7));
/// assert_eq!((least.value, least.position), (2.5, 7));
/// ```
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct At<V: AtValue> {
    /// The position of the value.
    pub position: usize,
    /// The value.
    pub value: V,
    padding: V::Padding,
}

impl<V: AtValue> At<V> {
    /// A value and its position.
    pub fn new(value: V, position: usize) -> Self {
        At { position, value, padding: V::Padding::default() }
    }
}

// SAFETY: all fields are `Zeroable`.
unsafe impl<V: AtValue> bytemuck::Zeroable for At<V> {}
// SAFETY: all fields are `Pod`. The layout is C's: the position has 8 bytes, the value at most 8 and as much alignment,
// and the last field, of bytes, fills them to 16 (asserted for each value type). So there is no padding.
unsafe impl<V: AtValue> Pod for At<V> {}

impl<V: AtValue> fmt::Debug for At<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At { position, value, .. } = self;
        f.debug_struct("At").field("value", value).field("position", position).finish()
    }
}

impl<V: AtValue> PartialEq for At<V> {
    fn eq(&self, other: &Self) -> bool {
        (self.value, self.position) == (other.value, other.position)
    }
}

impl<V: AtValue + Eq> Eq for At<V> {}

/// The value types of [`At`]: `f32`, `f64`, and integers of at most 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value that has a position in `At`",
    label = "expected `f32`, `f64` or an integer of at most 64 bits"
)]
pub trait AtValue: Pod + Default + PartialEq + fmt::Debug + sealed::Value {}

mod sealed {
    use std::cmp::Ordering;
    use std::fmt;

    use bytemuck::Pod;

    pub trait Value: Copy {
        /// Fills an element to 16 bytes.
        type Padding: Pod + Default + fmt::Debug;
        const LEAST: Self;
        const GREATEST: Self;

        fn is_nan(self) -> bool;

        /// A total order.
        fn order(self, other: Self) -> Ordering;
    }
}

/// The element with the least value; of equal values, the one with the lowest position.
///
/// Values are compared as by [`Min`]: -0 is less than +0, and NaN loses against every number. If all operands are NaN,
/// the result is the one with the lowest position.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinAt;
/// The element with the greatest value; of equal values, the one with the lowest position. NaN is treated as by
/// [`MinAt`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxAt;

/// Whether `a` is the result and not `b`. Two operands of which neither is first are the same bits.
#[inline(always)]
fn is_first<V: AtValue>(a: At<V>, b: At<V>, greatest: bool) -> bool {
    let order = if greatest { b.value.order(a.value) } else { a.value.order(b.value) };
    let positions = a.position.cmp(&b.position);
    let by_value_or_position = match (a.value.is_nan(), b.value.is_nan()) {
        (false, false) => order.then(positions),
        // NaNs of one position may still differ in their bits.
        (true, true) => positions.then(order),
        (one, other) => one.cmp(&other),
    };
    by_value_or_position.is_le()
}

impl<V: AtValue> Operator<At<V>> for MinAt {
    fn commutes(&self) -> bool {
        true
    }

    fn identity(&self) -> At<V> {
        At::new(V::GREATEST, usize::MAX)
    }

    #[inline(always)]
    fn combine(&self, a: At<V>, b: At<V>) -> At<V> {
        if is_first(a, b, false) { a } else { b }
    }
}

impl<V: AtValue> Operator<At<V>> for MaxAt {
    fn commutes(&self) -> bool {
        true
    }

    fn identity(&self) -> At<V> {
        At::new(V::LEAST, usize::MAX)
    }

    #[inline(always)]
    fn combine(&self, a: At<V>, b: At<V>) -> At<V> {
        if is_first(a, b, true) { a } else { b }
    }
}

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

/// Two values of any types: the element that a pair of operators combines, such as `(Sum, Max)`, each operator its own
/// value. `Sum` and the other built-in operators combine both values. For three values, nest: `Pair(a, Pair(b, c))` and
/// `(Sum, (Min, Max))`. It has no padding, so its fields are not aligned: copy them out, `let Pair(sum, greatest) = both`.
///
/// ```
/// use lpf_collectives::{Max, Operator, Pair, Sum};
///
/// let Pair(sum, greatest) = (Sum, Max).combine(Pair(0.5, 3_u8), Pair(1.0, 2));
/// assert_eq!((sum, greatest), (1.5, 3));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed)]
pub struct Pair<A: Copy, B: Copy>(pub A, pub B);

// SAFETY: both fields are `Zeroable`.
unsafe impl<A: Pod, B: Pod> bytemuck::Zeroable for Pair<A, B> {}
// SAFETY: both fields are `Pod`, and a packed struct has no padding. It is `Copy` and `'static`, as they are.
unsafe impl<A: Pod, B: Pod> Pod for Pair<A, B> {}

impl<A: Pod, B: Pod, F: Operator<A>, G: Operator<B>> Operator<Pair<A, B>> for (F, G) {
    fn commutes(&self) -> bool {
        self.0.commutes() && self.1.commutes()
    }

    #[inline(always)]
    fn identity(&self) -> Pair<A, B> {
        Pair(self.0.identity(), self.1.identity())
    }

    #[inline(always)]
    fn combine(&self, Pair(a, b): Pair<A, B>, Pair(c, d): Pair<A, B>) -> Pair<A, B> {
        Pair(self.0.combine(a, c), self.1.combine(b, d))
    }
}

/// On arrays, element by element, and on both values of a pair.
macro_rules! element_wise {
    ($($name:ident),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Pod, const N: usize> Operator<[T; N]> for $name
        where
            $name: Operator<T>,
        {
            fn commutes(&self) -> bool {
                true
            }

            #[inline(always)]
            fn identity(&self) -> [T; N] {
                [self.identity(); N]
            }

            #[inline(always)]
            fn combine(&self, left: [T; N], right: [T; N]) -> [T; N] {
                std::array::from_fn(|nth| self.combine(left[nth], right[nth]))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<A: Pod, B: Pod> Operator<Pair<A, B>> for $name
        where
            $name: Operator<A> + Operator<B>,
        {
            fn commutes(&self) -> bool {
                true
            }

            #[inline(always)]
            fn identity(&self) -> Pair<A, B> {
                ($name, $name).identity()
            }

            #[inline(always)]
            fn combine(&self, left: Pair<A, B>, right: Pair<A, B>) -> Pair<A, B> {
                ($name, $name).combine(left, right)
            }
        }
    )*};
}

element_wise!(Sum, Product, Min, Max, And, Or, Xor, MinAt, MaxAt);

macro_rules! integers {
    ($($type:ty),*) => {$(
        operator!(Sum on $type: 0, |a, b| a.wrapping_add(b));
        operator!(Product on $type: 1, |a, b| a.wrapping_mul(b));
        operator!(Min on $type: <$type>::MAX, |a, b| a.min(b));
        operator!(Max on $type: <$type>::MIN, |a, b| a.max(b));
        operator!(And on $type: !0, |a, b| a & b);
        operator!(Or on $type: 0, |a, b| a | b);
        operator!(Xor on $type: 0, |a, b| a ^ b);
    )*};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        operator!(Sum on $type: 0.0, |a, b| a + b);
        operator!(Product on $type: 1.0, |a, b| a * b);
        // Bits of equal values are joined so that of two zeros the negative one is less, and of two NaNs the result does
        // not depend on their order. Without branches, so that it is vectorised.
        operator!(Min on $type: <$type>::INFINITY, |a, b| {
            let either = <$type>::from_bits(a.to_bits() | b.to_bits());
            let one = if b < a || a.is_nan() { b } else { a };
            if a == b || a.is_nan() & b.is_nan() { either } else { one }
        });
        operator!(Max on $type: <$type>::NEG_INFINITY, |a, b| {
            let either = <$type>::from_bits(a.to_bits() | b.to_bits());
            let both = <$type>::from_bits(a.to_bits() & b.to_bits());
            let one = if b > a || a.is_nan() { b } else { a };
            let number = if a == b { both } else { one };
            if a.is_nan() & b.is_nan() { either } else { number }
        });
        at!($type: <$type>::NEG_INFINITY, <$type>::INFINITY, <$type>::is_nan, |a, b| a.total_cmp(b));
    )*};
}

macro_rules! at {
    ($type:ty: $least:expr, $greatest:expr, $is_nan:expr, $order:expr) => {
        impl sealed::Value for $type {
            type Padding = [u8; 8 - size_of::<$type>()];
            const LEAST: Self = $least;
            const GREATEST: Self = $greatest;

            #[inline(always)]
            fn is_nan(self) -> bool {
                $is_nan(self)
            }

            #[inline(always)]
            fn order(self, other: Self) -> Ordering {
                let order: fn(&$type, &$type) -> Ordering = $order;
                order(&self, &other)
            }
        }

        impl AtValue for $type {}

        // An element of three fields without padding between or behind them.
        const _: () = assert!(size_of::<At<$type>>() == 8 + 8 && align_of::<$type>() <= 8);
    };
}

macro_rules! integers_at {
    ($($type:ty),*) => {$(
        at!($type: <$type>::MIN, <$type>::MAX, |_| false, |a, b| a.cmp(b));
    )*};
}

integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
floats!(f32, f64);
integers_at!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

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

/// The time of a sum of f64 here, nanoseconds per byte of one vector: the smallest of several. This measures the
/// processor, outside any section.
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
    fn of_equal_values_the_lowest_position_is_named() {
        let at = |value: f64, position| At::new(value, position);
        assert_eq!(MinAt.combine(at(1.0, 7), at(1.0, 3)), at(1.0, 3));
        assert_eq!(MaxAt.combine(at(2.0, 7), at(1.0, 3)), at(2.0, 7));
        let identity: At<f64> = MaxAt.identity();
        assert_eq!(MaxAt.combine(identity, at(-5.0, 2)), at(-5.0, 2));
        assert_eq!(format!("{:?}", at(1.0, 7)), "At { value: 1.0, position: 7 }");
    }

    #[test]
    fn positions_beyond_the_whole_numbers_of_a_float_are_exact() {
        let (near, far) = (At::new(1f32, (1 << 24) + 1), At::new(1f32, usize::MAX - 1));
        assert_eq!(MinAt.combine(far, near).position, (1 << 24) + 1);
        assert_eq!(MaxAt.combine(far, At::new(0.0, 0)).position, usize::MAX - 1);
        let small = MaxAt.combine(At::new(3u8, 70_000), At::new(3u8, 80_000));
        assert_eq!((small.value, small.position), (3, 70_000));
    }

    /// Floating-point values that compare in unusual ways.
    fn unusual() -> Vec<f64> {
        let nan = f64::NAN.to_bits();
        let nans = [nan, nan | 5, nan | 1 << 63, nan | 9 | 1 << 63].map(f64::from_bits);
        let (infinity, least) = (f64::INFINITY, f64::MIN_POSITIVE);
        let mut all = vec![0.0, -0.0, 1.5, -1.5, infinity, -infinity, least, -least];
        all.extend(nans);
        all
    }

    /// The same bits in every order and with every bracketing of three operands.
    fn is_associative<T: Pod, O: Operator<T>>(operator: &O, all: &[T]) {
        let bits = |x: T| bytemuck::bytes_of(&x).to_vec();
        for &a in all {
            for &b in all {
                let one = operator.combine(a, b);
                assert_eq!(bits(one), bits(operator.combine(b, a)));
                assert_eq!(bits(operator.combine(one, a)), bits(one));
                for &c in all {
                    let other = operator.combine(a, operator.combine(b, c));
                    assert_eq!(bits(operator.combine(one, c)), bits(other));
                }
            }
        }
    }

    #[test]
    fn least_and_greatest_do_not_depend_on_the_order_of_operands() {
        let all = unusual();
        is_associative(&Min, &all);
        is_associative(&Max, &all);
        let single: Vec<f32> = all.iter().map(|&x| x as f32).collect();
        is_associative(&Min, &single);
        is_associative(&Max, &single);
        let at = |position| move |&value: &f64| At::new(value, position);
        let at: Vec<At<f64>> = (3..5).flat_map(|nth| all.iter().map(at(nth))).collect();
        is_associative(&MinAt, &at);
        is_associative(&MaxAt, &at);
    }

    #[test]
    fn nan_loses_against_every_number_and_minus_zero_is_less() {
        for &number in unusual().iter().filter(|x| !x.is_nan()) {
            let nan = At::new(f64::NAN, 0);
            let own = At::new(number, 9);
            assert_eq!(Min.combine(f64::NAN, number).to_bits(), number.to_bits());
            assert_eq!(Max.combine(number, f64::NAN).to_bits(), number.to_bits());
            assert_eq!([MinAt.combine(nan, own), MaxAt.combine(own, nan)], [own; 2]);
        }
        assert!(Min.combine(0f64, -0.0).is_sign_negative());
        assert!(Max.combine(-0f64, 0.0).is_sign_positive());
        assert_eq!(MinAt.combine(At::new(0.0, 1), At::new(-0.0, 2)).position, 2);
        assert_eq!(MaxAt.combine(At::new(0.0, 2), At::new(-0.0, 1)).position, 2);
        let nans = [4, 2].map(|position| At::new(f64::NAN, position));
        assert_eq!(MaxAt.combine(nans[0], nans[1]).position, 2);
    }
}
