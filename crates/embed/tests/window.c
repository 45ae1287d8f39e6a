/* A sender keeps a window of packets under way and halves it, once in a round trip, when a packet
   comes back with a mark. It crosses FQ-CoDel at 10 Mbit/s for ten seconds of its own time.
   Prints packets, halvings, packets lost, and the longest backlog in ms. */

#include <stdio.h>

#include "aqmlab-link.h"

#define MS 1000000ull
#define PACKETS 20000

static const char *LINK = "rate = '10 Mbit/s'\n"
                          "delay = '10 ms'\n"
                          "framing = 'none'\n"
                          "discipline = { kind = 'fq-codel', ecn = true }\n";

int main(void) {
  char why[200];
  if (aqmlab_link_abi() != AQMLAB_LINK_ABI) return 2;
  if (aqmlab_link_open("rate = 'fast'", 0, 1, why, sizeof why) != NULL || why[0] == 0) return 3;
  AqmlabLink *link = aqmlab_link_open(LINK, 0, 1, why, sizeof why);
  if (link == NULL) {
    fprintf(stderr, "%s\n", why);
    return 4;
  }
  static uint64_t back[PACKETS]; /* when the ACK of each packet is here */
  static int marked[PACKETS];
  double window = 10;
  uint64_t now = 0, sent = 0, acked = 0, cut_until = 0, longest = 0;
  int cuts = 0, lost = 0;
  for (uint64_t i = 0; i < PACKETS; i++) back[i] = AQMLAB_LINK_NEVER;
  while (now < 10000 * MS) {
    AqmlabLinkFate fate;
    aqmlab_link_advance(link, now);
    while (acked < sent && back[acked] <= now) {
      window += 1 / window;
      if (marked[acked] && acked >= cut_until) {
        window /= 2;
        cut_until = sent;
        cuts++;
      }
      acked++;
    }
    while ((double)(sent - acked) < (window < 2 ? 2 : window) && sent < PACKETS) {
      AqmlabLinkPacket packet = {.id = sent++, .flow = 7, .size = 1500, .ecn = 2};
      aqmlab_link_arrive(link, now, &packet);
    }
    while (aqmlab_link_fate(link, &fate)) {
      back[fate.id] = fate.at + 10 * MS;
      marked[fate.id] = fate.ecn == 3;
      if (fate.kind != AQMLAB_LINK_ARRIVES) {
        lost++;
        marked[fate.id] = 1;
      }
    }
    uint64_t drain = aqmlab_link_state(link).drain;
    if (drain > longest) longest = drain;
    now = aqmlab_link_next(link);
    if (acked < sent && back[acked] < now) now = back[acked];
  }
  aqmlab_link_close(link);
  aqmlab_link_close(NULL);
  printf("%llu %d %d %f\n", (unsigned long long)acked, cuts, lost, (double)longest / 1e6);
  return 0;
}
