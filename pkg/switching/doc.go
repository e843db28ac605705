// Package switching assigns the sequence numbers and timestamps of one outgoing RTP stream (a slot)
// that several incoming tracks feed in turn.
//
// A Switcher receives the facts about every packet of the tracks. For each packet it decides
// whether the packet is forwarded, and with which sequence number and timestamp. A Switcher is a
// pure data structure: no goroutine, clock, socket or lock, and no allocation per packet. The
// caller passes the time. The goroutine that owns the slot owns its Switcher.
//
// # Numbers
//
// The packets of one track that are forwarded without interruption form a run, in which output
// number = input number + constant. A gap in the input therefore keeps its numbers reserved: a
// missing packet is sent under its reserved number whenever it arrives, also after later switches.
// Runs follow each other without a gap: a new run begins at the number after the last reserved
// number. Therefore the only holes that a receiver sees are packets that the publisher has not
// delivered. For framed tracks the extent of a frame is known from any of its packets. The numbers
// of the whole frame are reserved when its first packet is forwarded.
//
// If the caller knows that a frame can no longer be completed, it ends the frame (End), and the
// rest of the frame is not sent. For the newest frame, the reserved numbers above the highest
// number sent are released; no receiver has seen them. An older frame leaves holes.
//
// No number is used twice, and no number is used that is 2^15 or more above the highest number
// sent. SRTP senders derive the packet index from the number and the highest number before, and
// with AES-GCM one index must never seal two different packets.
//
// # Parity
//
// Of the parity of a frame, a Switcher forwards only the share that SetParity requested before the
// frame began. The parity packets that are omitted have no numbers: the run ends with the last
// planned packet, which carries the marker, and the track continues with its next frame in a new
// run. If no packet of a frame arrived before a newer frame began, all packets of the frame are
// reserved, including parity: when the numbers were assigned, the number of source packets of the
// frame was not known.
//
// # Switching
//
// A switch occurs at the first packet of a frame of the new track. Afterwards the old track only
// completes the frames that it has begun, with their reserved numbers, and packets of the two
// tracks may be interleaved. Within a Group no frame is sent from two tracks, and frame numbers
// never decrease.
//
// The tracks of a publication usually arrive in the same order for every frame. If the active track
// always arrives before the pending track, the active track has always begun the frame that the
// pending track opens. Therefore the active track yields: when the pending track has opened a frame
// that cannot be begun any more, and so has proved to be alive, the active track begins no further
// frame and leaves the next frame to the pending track. If no packet of the pending track arrives
// for CutAfter, the active track continues.
//
// While both tracks arrive, the switch delay, from Select to the first packet of the new track, is
// therefore at most two frame intervals: the pending track opens a frame within one interval, and the
// active track may have begun the same frame.
//
// Frames of foreign codecs end with the marker, so that their extent is not known in advance. A
// switch waits for the end of the current frame, at most for CutAfter. The switch does not wait if
// the new frame is a key frame that the new track needs: the key frame was requested, may not be
// repeated for a second, and makes the rest of the old frame worthless.
//
// # History
//
// The last 64 runs are kept for late packets and for Resolve. A switch makes one run, and so does
// omitted parity. Even if either occurs at every frame, the history covers 2.1 s at 30 frames per
// second and 0.7 s at 90, while the deadline for repairs is 250 ms. A window of 16,384 numbers
// records which numbers have been sent: 0.33 s at 50,000 packets/s (500 Mbit/s through one slot).
// Older packets are not forwarded. A Switcher occupies about 8 kB.
//
// # Other programs
//
// NewInterceptor provides the same core as a Pion interceptor, so that RTPSender.ReplaceTrack gives
// receivers a stream without gaps.
package switching
