//! Values as the bytes of a page.
//!
//! Parquet's own encodings (parquet-format, Encodings.md), those that our tables take. A run writes
//! some hundred thousand values, so here each costs a few instructions.

/// Deltas that share a minimum.
const BLOCK: usize = 128;

/// Deltas that share a width.
const MINIBLOCK: usize = 32;

/// Whole numbers whose differences wrap around at their width.
pub(crate) trait Whole: Copy {
    /// The bits, for the first value.
    fn signed(self) -> i64;

    /// From `before` to here.
    fn difference(self, before: Self) -> i64;
}

impl Whole for u32 {
    #[inline]
    fn signed(self) -> i64 {
        i64::from(self as i32)
    }

    #[inline]
    fn difference(self, before: Self) -> i64 {
        i64::from(self.wrapping_sub(before) as i32)
    }
}

impl Whole for u64 {
    #[inline]
    fn signed(self) -> i64 {
        self as i64
    }

    #[inline]
    fn difference(self, before: Self) -> i64 {
        self.wrapping_sub(before) as i64
    }
}

/// `DELTA_BINARY_PACKED`: the first value, then in blocks the least difference and, with as many
/// bits as needed, how far each exceeds it.
pub(crate) fn deltas<T: Whole>(values: &[T], out: &mut Vec<u8>) {
    out.reserve(size_of_val(values) / 2);
    for number in [BLOCK, BLOCK / MINIBLOCK, values.len()] {
        varint(number as u64, out);
    }
    let Some((&first, rest)) = values.split_first() else {
        return zigzag(0, out);
    };
    zigzag(first.signed(), out);
    let mut before = first;
    let mut differences = [0; BLOCK];
    for block in rest.chunks(BLOCK) {
        let mut least = i64::MAX;
        let mut most = i64::MIN;
        for (place, &value) in differences.iter_mut().zip(block) {
            let difference = value.difference(before);
            least = least.min(difference);
            most = most.max(difference);
            *place = difference;
            before = value;
        }
        zigzag(least, out);
        if least == most {
            out.extend([0; BLOCK / MINIBLOCK]);
        } else {
            miniblocks(&differences[..block.len()], least, out);
        }
    }
}

/// The differences of a block above the least of them, with the width of each miniblock.
fn miniblocks(differences: &[i64], least: i64, out: &mut Vec<u8>) {
    let widths_at = out.len();
    out.extend([0; BLOCK / MINIBLOCK]);
    for (number, miniblock) in differences.chunks(MINIBLOCK).enumerate() {
        let mut above = [0; MINIBLOCK];
        let mut all = 0;
        for (place, difference) in above.iter_mut().zip(miniblock) {
            *place = difference.wrapping_sub(least) as u64;
            all |= *place;
        }
        let width = u64::BITS - all.leading_zeros();
        out[widths_at + number] = width as u8;
        pack(&above, width, out);
    }
}

/// Values of `width` bits one behind the other, the lowest bit first, to the end of a byte.
fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut bits = 0;
    let mut filled = 0;
    for &value in values {
        bits |= value << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend(bits.to_le_bytes());
            filled -= u64::BITS;
            bits = if filled == 0 {
                0
            } else {
                value >> (width - filled)
            };
        }
    }
    out.extend(&bits.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// The `RLE` hybrid of small numbers: runs of eight and more once with their length, others in
/// groups of eight of `width` bits each.
pub(crate) fn hybrid(values: &[u8], width: u32, out: &mut Vec<u8>) {
    let mut unwritten = 0;
    let mut at = 0;
    while at < values.len() {
        let run = values[at..]
            .iter()
            .take_while(|it| **it == values[at])
            .count();
        if run >= 8 {
            groups(&values[unwritten..at], width, out);
            varint((run as u64) << 1, out);
            out.push(values[at]);
            at += run;
            unwritten = at;
        } else {
            at = values.len().min(at + 8);
        }
    }
    groups(&values[unwritten..], width, out);
}

fn groups(values: &[u8], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    varint((values.len().div_ceil(8) as u64) << 1 | 1, out);
    for group in values.chunks(8) {
        let mut wide = [0; 8];
        for (place, value) in wide.iter_mut().zip(group) {
            *place = u64::from(*value);
        }
        pack(&wide, width, out);
    }
}

/// `PLAIN` numbers with fractions.
pub(crate) fn plain(values: &[f64], out: &mut Vec<u8>) {
    out.reserve(size_of_val(values));
    for value in values {
        out.extend(value.to_le_bytes());
    }
}

/// `PLAIN` truth values, eight to a byte.
pub(crate) fn plain_bits(values: &[bool], out: &mut Vec<u8>) {
    let byte = |eight: &[bool]| {
        eight
            .iter()
            .rev()
            .fold(0, |byte, bit| byte << 1 | u8::from(*bit))
    };
    out.extend(values.chunks(8).map(byte));
}

/// `PLAIN` texts, each behind its length.
pub(crate) fn plain_texts(values: &[String], out: &mut Vec<u8>) {
    for value in values {
        out.extend((value.len() as u32).to_le_bytes());
        out.extend(value.as_bytes());
    }
}

/// Seven bits to a byte, the lowest first.
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Numbers near zero are short, whatever their sign.
fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint((value << 1 ^ value >> 63) as u64, out);
}
