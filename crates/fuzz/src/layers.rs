//! One packet of any link type, twice: what is read of it does not go beyond what was captured.

use aqmlab_capture::decode;

use crate::captures;

/// The first two bytes are the link type, the others the packet.
pub fn check(input: &[u8]) {
    let Some((link, packet)) = input.split_at_checked(2) else {
        return;
    };
    let link = u16::from_be_bytes([link[0], link[1]]);
    let len = packet.len() as u32;
    if let Ok(found) = decode(link, packet, len) {
        // A tunnel states its own lengths: at most those of IP.
        assert!(found.payload <= (1 << 16).max(len));
        let again = decode(link, packet, len);
        assert_eq!(again, Ok(found));
    }
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend(u32::from(link).to_le_bytes());
    for second in [1_700_000_000_u32, 1_600_000_000] {
        for word in [second, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    captures::check(&file);
}
