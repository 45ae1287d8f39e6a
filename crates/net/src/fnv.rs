//! FNV-1a with 64 bits: a hash that notices a change and does not withstand a forger.

/// The hash of nothing.
pub const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of what `hash` is of, and of these bytes behind it.
///
/// Source: Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm" (RFC 9923).
#[inline]
pub fn fnv1a(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(hash, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the authors.
    #[test]
    fn known_texts_have_known_hashes() {
        let of = |text: &str| fnv1a(FNV_BASIS, text.bytes());
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }
}
