//! Hints to the processor and to the kernel about memory. No result depends on them.
//!
//! Where the connections fit into no cache, most of a run's time is waiting for memory, although it is
//! known many events ahead which of them come next.
#![allow(
    unsafe_code,
    reason = "a prefetch and madvise(MADV_HUGEPAGE) change no value; neither has a safe wrapper"
)]

/// Bytes of a cache line.
const LINE: usize = 64;

/// Vectors below this size need no large pages.
const LARGE: usize = 8 << 20;

/// Bytes of a large page, where there are any; a multiple of what other pages have.
#[cfg(all(target_os = "linux", not(miri)))]
const LARGE_PAGE: usize = 2 << 20;

/// Has a value brought into the nearest cache.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in 0..size_of::<T>().div_ceil(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = std::ptr::from_ref(value).cast::<i8>();
        // SAFETY: the instruction changes nothing that a program could see and fails at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(line * LINE)) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (value, LINE);
}

/// Adds a value to a vector. Where that makes the vector move and large, it gets large pages, so
/// that finding them takes less time.
#[inline(always)]
pub(crate) fn push<T>(values: &mut Vec<T>, value: T) {
    let is_full = values.len() == values.capacity();
    values.push(value);
    if is_full {
        use_large_pages(values);
    }
}

/// Asks for large pages if a vector is large.
#[cold]
pub(crate) fn use_large_pages<T>(values: &mut Vec<T>) {
    let bytes = values.capacity() * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        let start = values.as_mut_ptr().cast::<u8>();
        let before = start.align_offset(LARGE_PAGE);
        let pages = (bytes - before) & !(LARGE_PAGE - 1);
        // SAFETY: these are whole large pages of the vector's own memory, and what they hold stays. A kernel
        // without large pages refuses, which is as well.
        _ = unsafe {
            madvise(
                start.wrapping_add(before).cast(),
                pages,
                Advice::LinuxHugepage,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_change_no_value() {
        // Miri takes its time.
        let count = if cfg!(miri) { 100 } else { LARGE / 8 - 1 };
        let mut values = vec![7_u64; count];
        for value in &values[..8] {
            prefetch(value);
        }
        prefetch(&[0_u8; 3]);
        prefetch(&());
        values.shrink_to_fit();
        for value in 0..5 {
            push(&mut values, value);
        }
        let (old, new) = values.split_at(count);
        assert!(old.iter().all(|&value| value == 7));
        assert_eq!(new, [0, 1, 2, 3, 4]);
    }
}
