"""IPv4 packets with TCP segments, as bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from aqmlab.validation.script import Segment

__all__ = ["Packet", "build", "checksum", "read"]

BITS = {"F": 1, "S": 2, "R": 4, "A": 16, "E": 64, "W": 128, "N": 256}
"""Control bits of the TCP header, by the letter of scripts."""
PSH = 8
TCP = 6
MSS, SCALE, SACK_PERMITTED, SACK, STAMPS = 2, 3, 4, 5, 8
ACCECN = {172: False, 174: True}
"""Kinds of the option of Accurate ECN; whether the bytes in ECT(1) come first."""


@dataclass(frozen=True)
class Packet:
    """A segment with what a script does not state; its numbers are those of the wire."""

    segment: Segment
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    window: int = 65535
    mss: int | None = None
    """The largest segment, which only a SYN states."""
    scale: int | None = None
    """The shift of later windows, which only a SYN states."""


def checksum(data: bytes) -> int:
    """The checksum of the internet (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(packet: Packet, length: int) -> bytes:
    """What the checksum of TCP covers besides the segment."""
    return packet.source + packet.destination + struct.pack("!BBH", 0, TCP, length)


def options(packet: Packet) -> bytes:
    """The options of a packet, filled to whole words."""
    segment = packet.segment
    parts = []
    if packet.mss is not None:
        parts.append(struct.pack("!BBH", MSS, 4, packet.mss))
    if segment.sack_permitted:
        parts.append(struct.pack("!BB", SACK_PERMITTED, 2))
    if segment.stamps:
        parts.append(struct.pack("!BBII", STAMPS, 10, *(each % 2**32 for each in segment.stamps)))
    if packet.scale is not None:
        parts.append(struct.pack("!BBB", SCALE, 3, packet.scale))
    if segment.accecn:
        kind = next(kind for kind, first in ACCECN.items() if first == segment.ect1_first)
        counters = b"".join((each % 2**24).to_bytes(3, "big") for each in segment.accecn)
        parts.append(struct.pack("!BB", kind, 2 + len(counters)) + counters)
    if segment.sack:
        blocks = b"".join(
            struct.pack("!II", *(end % 2**32 for end in block)) for block in segment.sack
        )
        parts.append(struct.pack("!BB", SACK, 2 + len(blocks)) + blocks)
    written = b"".join(parts)
    return written + b"\x01" * (-len(written) % 4)


def build(packet: Packet) -> bytes:
    """The bytes of a packet; its payload is zeros."""
    segment = packet.segment
    written = options(packet)
    bits = sum(BITS[letter] for letter in segment.flags)
    bits |= PSH if segment.length else 0
    head = struct.pack(
        "!HHIIHHHH",
        packet.source_port,
        packet.destination_port,
        segment.seq % 2**32,
        segment.ack % 2**32,
        (5 + len(written) // 4) << 12 | bits,
        packet.window,
        0,
        0,
    )
    tcp = bytearray(head + written + bytes(segment.length))
    struct.pack_into("!H", tcp, 16, checksum(pseudo_header(packet, len(tcp)) + bytes(tcp)))
    ip = bytearray(
        struct.pack("!BBHHHBBH", 0x45, segment.ecn, 20 + len(tcp), 0, 0x4000, 64, TCP, 0)
        + packet.source
        + packet.destination
    )
    struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
    return bytes(ip + tcp)


def read(data: bytes) -> Packet | None:
    """The packet in these bytes; nothing if it is no TCP over IPv4, or cut short."""
    if len(data) < 40 or data[0] >> 4 != 4 or data[9] != TCP:
        return None
    start = (data[0] & 15) * 4
    size = struct.unpack_from("!H", data, 2)[0]
    source_port, destination_port, seq, ack, bits, window = struct.unpack_from(
        "!HHIIHH", data, start
    )
    head = (bits >> 12) * 4
    if size > len(data) or start + head > size:
        return None
    flags = "".join(letter for letter in "SFRAEWN" if bits & BITS[letter])
    segment = Segment(flags, seq, size - start - head, ack, ecn=data[1] & 3)
    found = Packet(segment, data[12:16], data[16:20], source_port, destination_port, window)
    return with_options(found, data[start + 20 : start + head])


def with_options(packet: Packet, rest: bytes) -> Packet:
    """The packet with the options in these bytes."""
    while rest and rest[0] != 0:
        if rest[0] == 1:
            rest = rest[1:]
            continue
        if len(rest) < 2 or not 2 <= rest[1] <= len(rest):
            break
        kind, body, rest = rest[0], rest[2 : rest[1]], rest[rest[1] :]
        segment = packet.segment
        if kind == MSS:
            packet = replace(packet, mss=int.from_bytes(body, "big"))
        elif kind == SCALE:
            packet = replace(packet, scale=body[0])
        elif kind == SACK_PERMITTED:
            packet = replace(packet, segment=replace(segment, sack_permitted=True))
        elif kind == STAMPS:
            stamp, echo = struct.unpack("!II", body)
            packet = replace(packet, segment=replace(segment, stamps=(stamp, echo)))
        elif kind == SACK:
            ends = struct.unpack(f"!{len(body) // 4}I", body)
            blocks = tuple(zip(ends[::2], ends[1::2], strict=True))
            packet = replace(packet, segment=replace(segment, sack=blocks))
        elif kind in ACCECN:
            counters = tuple(
                int.from_bytes(body[at : at + 3], "big") for at in range(0, len(body), 3)
            )
            changed = replace(segment, accecn=counters, ect1_first=ACCECN[kind])
            packet = replace(packet, segment=changed)
    return packet
