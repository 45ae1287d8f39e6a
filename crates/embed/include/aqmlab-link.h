/* A link with its queue, for C: any of aqmlab's queues between two ends of your own, in whatever
   time you keep.

   Build the library with `cargo build --release -p aqmlab-embed` and link with `-laqmlab_embed`.
   crates/embed/tests/window.c is an example. Generated from crates/embed/src/abi.rs. */

#ifndef AQMLAB_LINK_H
#define AQMLAB_LINK_H

#include <stddef.h>
#include <stdint.h>

/*
 The version of everything in this header.
 */
#define AQMLAB_LINK_ABI 1

/*
 The packet is at the far end at `at`.
 */
#define AQMLAB_LINK_ARRIVES 0

/*
 The queue has dropped it: its law wanted it to, before the buffer was full.
 */
#define AQMLAB_LINK_DROPPED_EARLY 1

/*
 The queue has dropped it: the buffer was full.
 */
#define AQMLAB_LINK_DROPPED_FULL 2

/*
 The queue has dropped it for another reason.
 */
#define AQMLAB_LINK_DROPPED 3

/*
 The wire has lost it at random.
 */
#define AQMLAB_LINK_LOST 4

/*
 When nothing is to come.
 */
#define AQMLAB_LINK_NEVER UINT64_MAX

/*
 One direction of a link with its queue.
 */
typedef struct AqmlabLink AqmlabLink;

/*
 A packet that arrives at a queue.
 */
typedef struct AqmlabLinkPacket {
  /*
   What the caller calls it; it gets it back.
   */
  uint64_t id;
  /*
   What its flow has in common and other flows have not: a hash of its addresses and ports.
   */
  uint64_t flow;
  /*
   IP bytes.
   */
  uint32_t size;
  /*
   The ECN field of the IP header: 0 none, 1 ECT(1), 2 ECT(0), 3 CE.
   */
  uint8_t ecn;
  /*
   The code point of the IP header, 0 to 63.
   */
  uint8_t dscp;
  /*
   Nothing; 0.
   */
  uint16_t reserved;
} AqmlabLinkPacket;

/*
 What has become of a packet.
 */
typedef struct AqmlabLinkFate {
  /*
   What the caller called it.
   */
  uint64_t id;
  /*
   When, in nanoseconds.
   */
  uint64_t at;
  /*
   AQMLAB_LINK_ARRIVES and so on.
   */
  uint32_t kind;
  /*
   The ECN field with which it arrives.
   */
  uint8_t ecn;
  /*
   Nothing; 0.
   */
  uint8_t reserved[3];
} AqmlabLinkFate;

/*
 What waits.
 */
typedef struct AqmlabLinkState {
  /*
   Packets in the queue.
   */
  uint64_t packets;
  /*
   Their IP bytes.
   */
  uint64_t bytes;
  /*
   Nanoseconds that it takes to send all that waits, the packet on the wire included.
   */
  uint64_t drain;
} AqmlabLinkState;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the library: AQMLAB_LINK_ABI of the header that fits.
 */
uint32_t aqmlab_link_abi(void);

/*
 Makes one direction of a link; NULL if its description is wrong.

 `link` is TOML, the fields of `topology.bottleneck` of a scenario, such as
 "rate = '10 Mbit/s'\ndelay = '10 ms'\ndiscipline = { kind = 'fq-codel' }".
 `is_reverse` takes the fields of its `reverse`. `seed` is that of all random numbers.
 Why it is wrong is written into `error`, with a NUL, if that is not NULL: at most
 `error_size` bytes.

 # Safety

 `link` is a string; `error` is NULL or has `error_size` bytes.
 */
struct AqmlabLink *aqmlab_link_open(const char *link,
                                    int32_t is_reverse,
                                    uint64_t seed,
                                    char *error,
                                    size_t error_size);

/*
 The link is of no more use. NULL is left alone.

 # Safety

 `link` is NULL or was made by `aqmlab_link_open`, and is not used any more.
 */
void aqmlab_link_close(struct AqmlabLink *link);

/*
 A packet arrives at `now`, in nanoseconds since the start. Times never go back: an earlier one counts
 as the latest that was said.

 # Safety

 `link` is one of `aqmlab_link_open`, `packet` a record.
 */
void aqmlab_link_arrive(struct AqmlabLink *link,
                        uint64_t now,
                        const struct AqmlabLinkPacket *packet);

/*
 Goes to `now`: packets leave the queue that are due by then.

 # Safety

 `link` is one of `aqmlab_link_open`.
 */
void aqmlab_link_advance(struct AqmlabLink *link, uint64_t now);

/*
 When a packet leaves the queue next, in nanoseconds: the caller goes there at the latest.
 AQMLAB_LINK_NEVER if nothing waits.

 # Safety

 `link` is one of `aqmlab_link_open`.
 */
uint64_t aqmlab_link_next(const struct AqmlabLink *link);

/*
 Takes the next packet of which it is known what has become of it: 1, or 0 if there is none. A
 packet that arrives may be known before its time `at`.

 # Safety

 `link` is one of `aqmlab_link_open`, `fate` a record.
 */
int32_t aqmlab_link_fate(struct AqmlabLink *link, struct AqmlabLinkFate *fate);

/*
 What waits at the latest time that was said.

 # Safety

 `link` is one of `aqmlab_link_open`.
 */
struct AqmlabLinkState aqmlab_link_state(struct AqmlabLink *link);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AQMLAB_LINK_H */
