/* The C ABI of aqmlab: queue disciplines and congestion controls of your own.

   A shared object exports one or both of

       const AqmlabDiscipline *aqmlab_discipline(void);
       const AqmlabControl *aqmlab_control(void);

   Compile it with `cc -O2 -shared -fPIC -ffp-contract=off -o libmine.so mine.c` and give it to a
   run: `aqmlab run SCENARIO --plugin ./libmine.so`. docs/extending.md has examples.

   The first argument of every callback is the record of an instance, which begins as zeros with
   its fields set. Generated from crates/plugin/src/abi.rs. */

#ifndef AQMLAB_H
#define AQMLAB_H

#include <stddef.h>
#include <stdint.h>

/*
 The version of everything in this header.
 */
#define AQMLAB_ABI 2

/*
 The packet is let in, or sent.
 */
#define AQMLAB_ADMIT 0

/*
 Congestion is signalled: a mark where ECN is on and the packet capable, else a drop.
 */
#define AQMLAB_SIGNAL 1

/*
 The packet is dropped, whatever ECN allows; counted as `early`.
 */
#define AQMLAB_DROP 2

/*
 The same, counted as `forced`: the algorithm is past the point where it only drops.
 */
#define AQMLAB_FORCE 3

/*
 Duplicate ACKs, or SACK.
 */
#define AQMLAB_LOSS 0

/*
 The receiver has echoed a mark.
 */
#define AQMLAB_ECHO 1

/*
 The retransmission timer has expired.
 */
#define AQMLAB_TIMEOUT 2

/*
 A double.
 */
#define AQMLAB_NUMBER 0

/*
 An int64_t.
 */
#define AQMLAB_INTEGER 1

/*
 An int64_t, 0 or 1.
 */
#define AQMLAB_BOOLEAN 2

/*
 An int64_t of nanoseconds; in scenarios "5 ms".
 */
#define AQMLAB_TIME 3

/*
 An int64_t; in scenarios "1500 bytes".
 */
#define AQMLAB_BYTES 4

/*
 An int64_t of bits per second; in scenarios "10 Mbit/s".
 */
#define AQMLAB_RATE 5

/*
 A double; in scenarios "5 packets".
 */
#define AQMLAB_PACKETS 6

/*
 A parameter that every scenario must give.
 */
#define AQMLAB_REQUIRED 0

/*
 A parameter with a default.
 */
#define AQMLAB_OPTIONAL 1

/*
 A variable: records show it, and it is no parameter.
 */
#define AQMLAB_VARIABLE 2

/*
 A parameter or a variable: a value of eight bytes in the record of an instance.
 */
typedef struct AqmlabField {
  /*
   Its name in scenarios and records.
   */
  const char *name;
  /*
   What it means, in a sentence.
   */
  const char *meaning;
  /*
   AQMLAB_NUMBER and so on.
   */
  uint32_t form;
  /*
   AQMLAB_REQUIRED, AQMLAB_OPTIONAL or AQMLAB_VARIABLE.
   */
  uint32_t role;
  /*
   Where it is in the record, in bytes: a multiple of 8.
   */
  uint64_t offset;
  /*
   The default of an optional parameter, or what a variable begins with.
   */
  double preset;
} AqmlabField;

/*
 What every plug-in says of itself.
 */
typedef struct AqmlabHead {
  /*
   AQMLAB_ABI.
   */
  uint32_t abi;
  /*
   sizeof(AqmlabDiscipline) or sizeof(AqmlabControl).
   */
  uint32_t size;
  /*
   sizeof(AqmlabEvent) or sizeof(AqmlabAck).
   */
  uint32_t event_size;
  /*
   sizeof(AqmlabField).
   */
  uint32_t field_size;
  /*
   Its name in scenarios.
   */
  const char *name;
  /*
   What it is for, in a sentence.
   */
  const char *purpose;
  /*
   Bytes of the record of an instance. It is zeroed, then the fields are set, then `start` is
   called. It is moved and copied as bytes: it must not point to itself or own anything.
   */
  uint64_t record_size;
  /*
   Its parameters and variables.
   */
  const struct AqmlabField *fields;
  /*
   How many.
   */
  uint64_t field_count;
} AqmlabHead;

/*
 Functions of mathematics that give the same bytes on every machine.
 */
typedef struct AqmlabMath {
  /*
   x to the power of y.
   */
  double (*pow)(double, double);
  /*
   The cube root of x.
   */
  double (*cbrt)(double);
  /*
   e to the power of x.
   */
  double (*exp)(double);
  /*
   The natural logarithm of x.
   */
  double (*log)(double);
} AqmlabMath;

/*
 What happens at a queue. Times are nanoseconds since the start of the run.
 */
typedef struct AqmlabEvent {
  /*
   When it happens; for on_idle, since when nothing is sent.
   */
  int64_t now;
  /*
   When the packet came (on_departure, on_head).
   */
  int64_t arrived;
  /*
   The flow of the packet; hash it.
   */
  uint64_t flow;
  /*
   IP bytes of the packet.
   */
  int64_t size;
  /*
   Its ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
   */
  int64_t ecn;
  /*
   Its differentiated services code point.
   */
  int64_t dscp;
  /*
   Whether a signal to it would be a mark.
   */
  int64_t marks;
  /*
   Packets that wait, without this one.
   */
  int64_t packets;
  /*
   Their IP bytes.
   */
  int64_t bytes;
  /*
   The number of the packet's queue (on_head).
   */
  int64_t queue;
  /*
   Packets that wait in that queue, without this one.
   */
  int64_t queue_packets;
  /*
   Their IP bytes.
   */
  int64_t queue_bytes;
  /*
   Bits per second of the link.
   */
  int64_t rate;
  /*
   Bytes on the wire beside the IP bytes of each packet.
   */
  int64_t framing;
  /*
   For hash functions: another number in every run and at every queue.
   */
  uint64_t seed;
  /*
   Functions of mathematics.
   */
  const struct AqmlabMath *math;
  double (*draw)(void*);
  void *stream;
  int64_t nan;
} AqmlabEvent;

/*
 A callback about a queue. What it returns depends on the callback.
 */
typedef int64_t (*AqmlabOnEvent)(void*, struct AqmlabEvent*);

/*
 A queue discipline. Callbacks that are not needed are null.
 */
typedef struct AqmlabDiscipline {
  /*
   Name, parameters, variables.
   */
  struct AqmlabHead head;
  /*
   The queue is empty and the wire quiet. Returns when `tick` is due, a time after now, or a
   negative number for never; anything without `tick`.
   */
  AqmlabOnEvent start;
  /*
   A packet arrives. Returns AQMLAB_ADMIT and so on. The limit is seen to afterwards.
   */
  AqmlabOnEvent on_arrival;
  /*
   A packet that was let in did not fit and is dropped.
   */
  AqmlabOnEvent on_overflow;
  /*
   A packet leaves for the wire.
   */
  AqmlabOnEvent on_departure;
  /*
   Nothing waits and the wire is quiet.
   */
  AqmlabOnEvent on_idle;
  /*
   It is the time that `start` or `tick` returned last. Returns the next, a time after now, or a
   negative number for never.
   */
  AqmlabOnEvent tick;
  /*
   The rate of the link has changed.
   */
  AqmlabOnEvent on_link;
  /*
   Parameters have changed.
   */
  AqmlabOnEvent on_change;
  /*
   The number of the queue that a packet joins, from 0 to 65535.
   */
  AqmlabOnEvent enqueue;
  /*
   Something waits: the number of the queue to serve, which must not be empty.
   */
  AqmlabOnEvent dequeue;
  /*
   A packet has come to the head of its queue and would be sent. Returns AQMLAB_ADMIT and so
   on; what is dropped gives way to the next.
   */
  AqmlabOnEvent on_head;
} AqmlabDiscipline;

/*
 What happens to a sender. Times are nanoseconds since the start of the run.
 */
typedef struct AqmlabAck {
  /*
   When it happens.
   */
  int64_t now;
  /*
   Bytes that the ACK acknowledges.
   */
  int64_t acked;
  /*
   The oldest byte not acknowledged, from now on (on_send: the first byte sent).
   */
  int64_t una;
  /*
   Behind the highest byte sent (on_send: behind the last byte sent now).
   */
  int64_t max;
  /*
   The round trip that this ACK measures; -1: none.
   */
  int64_t rtt;
  /*
   Segments in flight, as far as they are known to be (before what is sent now).
   */
  int64_t segments;
  /*
   Bytes in flight (on_loss, on_timeout).
   */
  int64_t flight;
  /*
   Bytes of a full segment.
   */
  int64_t mss;
  /*
   AQMLAB_LOSS, AQMLAB_ECHO or AQMLAB_TIMEOUT.
   */
  int64_t cause;
  /*
   Whether the segment was sent before (on_send).
   */
  int64_t resent;
  /*
   Whether the window is below the slow-start threshold (on_ack).
   */
  int64_t slow_start;
  /*
   The window in bytes to which Reno would open it now (on_ack).
   */
  double reno;
  /*
   Bytes that the stack takes a decrease of: those in flight, or the window (on_loss).
   */
  double base;
  /*
   The congestion window in bytes; on_ack sets it.
   */
  double cwnd;
  /*
   The slow-start threshold in bytes; on_ack, on_loss and on_timeout set it. After a loss the
   window is this.
   */
  double ssthresh;
  /*
   Bytes per second at which segments leave; 0: as the window allows.
   */
  double pacing;
  /*
   Functions of mathematics.
   */
  const struct AqmlabMath *math;
} AqmlabAck;

/*
 A callback about a sender. What it returns does not matter.
 */
typedef int64_t (*AqmlabOnAck)(void*, struct AqmlabAck*);

/*
 A congestion control. Callbacks that are not needed are null.
 */
typedef struct AqmlabControl {
  /*
   Name, parameters, variables.
   */
  struct AqmlabHead head;
  /*
   A connection begins.
   */
  AqmlabOnAck start;
  /*
   New data is acknowledged and no loss is being repaired. Null: Reno's growth.
   */
  AqmlabOnAck on_ack;
  /*
   New data is acknowledged while a loss is repaired.
   */
  AqmlabOnAck on_recovery_ack;
  /*
   A segment leaves.
   */
  AqmlabOnAck on_send;
  /*
   Congestion, except time-outs. Null: half.
   */
  AqmlabOnAck on_loss;
  /*
   The retransmission timer has expired. Null: as on_loss.
   */
  AqmlabOnAck on_timeout;
  /*
   The last congestion was none.
   */
  AqmlabOnAck on_undo;
} AqmlabControl;

#endif  /* AQMLAB_H */

/* What every head begins with, for a record and the records of its events. */
#define AQMLAB_HEAD(plugin, event, record) \
  .abi = AQMLAB_ABI, .size = sizeof(plugin), .event_size = sizeof(event), \
  .field_size = sizeof(AqmlabField), .record_size = sizeof(record)

/* A field of a record: a parameter with its default, one without, and a variable. */
#define AQMLAB_OPTION(record, field, type, value, text) \
  { #field, text, type, AQMLAB_OPTIONAL, offsetof(record, field), value }
#define AQMLAB_NEEDED(record, field, type, text) \
  { #field, text, type, AQMLAB_REQUIRED, offsetof(record, field), 0 }
#define AQMLAB_STATE(record, field, type, value) \
  { #field, "", type, AQMLAB_VARIABLE, offsetof(record, field), value }

/* The next random number of the run, uniform on [0, 1): in on_arrival, enqueue, dequeue, on_head. */
static inline double aqmlab_draw(AqmlabEvent *event) { return event->draw(event->stream); }

/* Whether something of this probability happens; a number is drawn only where that is open. */
static inline int aqmlab_chance(AqmlabEvent *event, double probability) {
  if (probability != probability) event->nan = 1; /* not a number: the engine ends the run */
  return probability > 0.0 && (probability >= 1.0 || aqmlab_draw(event) < probability);
}
