//! What live connections take.
#![allow(unsafe_code, reason = "an allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use aqmlab_capture::{CaptureReader, Extractor, Options};
use common::{ACK, Pair, Tap};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as demanded of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as demanded of the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The one of `count` connections that has this number.
fn pair(number: u32) -> Pair {
    let mut pair = Pair::new(1024 + (number % 50_000) as u16);
    pair.client
        .set_ip([10, 1, (number / 50_000) as u8, 1].into());
    pair
}

/// 150,000 connections, each with two exchanges behind it, are open at once: less than 500 bytes
/// each, whatever the tables' fill.
#[test]
fn a_live_connection_takes_less_than_500_bytes() {
    const CONNECTIONS: u32 = 150_000;
    let mut extractor = Extractor::new(Options::default());
    let before = HELD.load(Ordering::Relaxed);
    let mut most: f64 = 0.0;
    for chunk in 0..CONNECTIONS / 1000 {
        let mut tap = Tap::new();
        for number in chunk * 1000..(chunk + 1) * 1000 {
            let pair = pair(number);
            let at = f64::from(number) / 1000.0;
            tap.handshake(at, &pair);
            for exchange in 0..2 {
                let (a, b) = (100 * exchange, 1000 * exchange);
                tap.at(at + 31.0, &pair, (0, ACK, a, b, 100));
                tap.at(at + 62.0, &pair, (1, ACK, b, a + 100, 1000));
            }
        }
        let bytes = tap.bytes();
        let mut reader = CaptureReader::new(&bytes[..]).unwrap();
        while let Some(record) = reader.next_packet().unwrap() {
            extractor.on_record(&record);
        }
        drop(reader);
        drop(bytes);
        if chunk >= 10 {
            let held = HELD.load(Ordering::Relaxed) - before;
            most = most.max(held as f64 / f64::from((chunk + 1) * 1000));
        }
    }
    assert_eq!(
        extractor.report().connections.live_max,
        u64::from(CONNECTIONS)
    );
    println!("{most:.0} bytes per live connection");
    assert!(most < 500.0, "{most} bytes");
}
