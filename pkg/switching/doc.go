// Package switching owns the numbering of one outgoing RTP stream (a slot) that several incoming tracks feed in turn.
//
// A Switcher is given the facts about every packet of the tracks concerned and says whether the packet goes out, and under
// which sequence number and timestamp. It is a pure structure: no goroutine, clock, socket or lock, and no allocation per
// packet. Time is what the caller passes in. Whoever owns the slot (one goroutine) owns its Switcher.
//
// # Numbers
//
// The packets of one track that are forwarded without interruption form a run, in which output number = input number + constant.
// A packet that the publisher still owes (a gap in the input) therefore keeps its number reserved, and goes out under it
// whenever it comes, also after later switches. Runs follow each other without a gap: a new one begins at the number after the last
// one reserved. So the only holes that a receiver ever sees are packets that the publisher has not delivered. For framed
// tracks the frame's extent is known from any of its packets, and is reserved as soon as one of them is forwarded.
//
// A frame that the caller knows cannot be completed any more is ended (End): what is left of it is not sent. Of the newest frame the numbers above the highest one sent are given
// back; nobody outside has seen them. An older frame leaves holes.
//
// No number is given twice, and no number is given that is 2^15 or more above the highest one sent: senders of SRTP derive
// the packet index from the number and from the highest one before, and with AES-GCM one index must never seal two different packets.
//
// # Parity
//
// Of the parity of a frame only as much is forwarded as SetParity asked for when the frame began. The packets left out have no numbers, so that the
// run ends with the last one planned, which carries the marker, and the track goes on in a run of its own with its next frame. A frame of which nothing
// came before a newer one began is owed whole, parity included: its numbers were given before anybody knew how many source packets it has.
//
// # Switching
//
// A switch happens at the first packet of a frame of the new track. From then on the old track only completes the frames that
// it had begun, inside their reserved numbers, and the two may arrive interleaved. Within a Group no frame goes out from two tracks, and
// frames never go backwards.
//
// The tracks of a publication usually arrive in the same order for every frame. If the active track always comes before the
// pending one, then the pending track's frame is always one that the active track has begun already. So the active track
// yields: once the pending track has shown that it is alive, by opening a frame that cannot be begun any more, the active
// track begins no further frame, and the next frame is left to the pending one. If nothing comes for CutAfter, the active track goes on.
//
// Frames of foreign codecs end with the marker, so their extent is not known in advance. A switch waits for the end
// of the frame under way, at most CutAfter, unless the new frame is a key frame that the new track needs: that one was asked for, may not come
// again for a second, and makes the rest of the old frame worthless.
//
// # History
//
// The last 64 runs are remembered, for late packets and for Resolve. A switch makes one run, and so does parity that is left out, so that even
// either at every frame leaves 2.1 s of history at 30 frames per second and 0.7 s at 90, where the deadline for repairs is 250 ms. Numbers that have
// been sent are remembered in a window of 16,384, which is 0.33 s at 50,000 packets/s (500 Mbit/s through one slot); what is older is not
// forwarded any more. A Switcher takes about 8 kB.
//
// # For other programs
//
// NewInterceptor wraps the same core as a Pion interceptor, so that RTPSender.ReplaceTrack gives receivers a stream without gaps.
package switching
