//! The texts of profiles: with their comments, or without them where room is short.

/// The text of a profile that ships; in the playground without comments, which take 1 kB there.
macro_rules! text {
    ($file:literal) => {{
        const WHOLE: &str = include_str!($file);
        #[cfg(target_family = "wasm")]
        const BARE: [u8; $crate::profile::text::bare::<0>(WHOLE).0] =
            $crate::profile::text::bare(WHOLE).1;
        #[cfg(target_family = "wasm")]
        const TEXT: &str = match std::str::from_utf8(&BARE) {
            Ok(text) => text,
            Err(_) => panic!("whole lines and characters are left out"),
        };
        #[cfg(not(target_family = "wasm"))]
        const TEXT: &str = WHOLE;
        TEXT
    }};
}
pub(super) use text;

/// A TOML text without comments: its length, and the first `N` of its bytes. No text in it may have
/// a number sign or an escaped quotation mark.
#[cfg(any(test, target_family = "wasm"))]
pub(super) const fn bare<const N: usize>(text: &str) -> (usize, [u8; N]) {
    let text = text.as_bytes();
    let (mut length, mut kept) = (0, [0; N]);
    let (mut place, mut is_comment) = (0, false);
    while place < text.len() {
        is_comment = text[place] == b'#' || (is_comment && text[place] != b'\n');
        if !is_comment {
            if length < N {
                kept[length] = text[place];
            }
            length += 1;
        }
        place += 1;
    }
    (length, kept)
}
