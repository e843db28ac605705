// Package redundancy decides which packets of a peer connection leave twice: on the primary path, and as a copy on a
// second path that the remote peer has declared. It also measures both paths.
//
// The sending side has a Selector, which sees every packet before the packet leaves. In the mode Auto the Selector
// copies the packets whose loss is noticed most, in this order: audio, the lowest quality of a tile, the last packet of
// a frame, and retransmissions. Copies take at most 30 % of the sent bytes. During an outage of the primary path,
// every packet is copied. Copies never exceed the rate that the second path is estimated to carry.
//
// The receiving side has a Recorder, which sees every arrival on every path, including the arrival of a packet that
// another path has already delivered. The Recorder makes a Report for the sending side: the newest packet of each path,
// the time of its arrival, and the number of arrivals. The Selector finds the packet in a log of sent packets. The
// reports therefore need no numbers per path in the packets, and no synchronised clocks:
//
//   - The loss of a path is the difference between the packets sent and the packets arrived up to the newest packet.
//   - The transit of a packet is its arrival by the receiver's clock less its departure by the sender's clock. The
//     offset of the clocks is the same for both paths and all packets, so differences of transits are delays.
//   - The primary path has an outage if the packet after the newest one is overdue when the report is made.
//
// Both types are pure. Time is an argument of their methods. The owner serialises all calls.
package redundancy
