//! Connection vectors of anything: an error with its line, or vectors that are written and read
//! again as the same.

use aqmlab_traffic::vector::{VectorReader, write_alternate, write_original};

/// Connection vectors.
pub fn check(text: &[u8]) {
    let read: Result<Vec<_>, _> = VectorReader::new(text).collect();
    let vectors = match read {
        Ok(vectors) => vectors,
        Err(error) => return assert!(error.line > 0),
    };
    let (mut original, mut alternate) = (Vec::new(), Vec::new());
    for vector in &vectors {
        write_original(&mut original, vector).expect("memory takes everything");
        write_alternate(&mut alternate, vector).expect("memory takes everything");
    }
    for written in [original, alternate] {
        let again: Result<Vec<_>, _> = VectorReader::new(&written[..]).collect();
        assert_eq!(again.as_ref(), Ok(&vectors));
    }
}
