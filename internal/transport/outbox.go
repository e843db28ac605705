package transport

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/srtp"
	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// outboxRun is the number of datagrams that one segmented send takes (UDP_MAX_SEGMENTS).
	outboxRun = 64
	// rtcpBytes is the size of the largest compound sent: 50 report blocks of 24 bytes, and the headers around them.
	rtcpBytes = 1500
)

// outbox encrypts the packets of one peer and queues them until they are sent. Each peer has its own mutex.
type outbox struct {
	path *path
	// ecn is the codepoint of RTP packets that are queued from now on, rtcpECN that of RTCP packets: an ecn.Codepoint.
	ecn, rtcpECN atomic.Uint32
	// copied is set while queued RTP packets also leave on the second route, doubled while they leave twice on the
	// primary route.
	copied, doubled atomic.Bool

	mu     sync.Mutex
	sealer *srtp.Sealer
	// sent counts the encrypted RTP packets.
	sent Traffic
	// buffer is nil while nothing is queued. used is the number of bytes in use.
	buffer *udp.Buffer
	used   int
	// messages are the runs in the buffer. Packets are appended to the last run while they have its segment length and
	// its codepoint. A shorter packet ends the run.
	messages []udp.Message
	// short is set when the last run has ended.
	short bool
	// copies are the runs that also leave on the second route, in the same buffer. copiesEnd is the end of the last.
	copies    []udp.Message
	copiesEnd int
	// stamp requests the departure time of the next packet.
	stamp bool

	rtcp       sync.Mutex
	rtcpSealer *srtp.Sealer
	// sealed is the buffer for RTCP, of rtcpBytes.
	sealed []byte
}

// queue encrypts a packet into the outbox. If the outbox is full, the queued packets are sent first.
func (o *outbox) queue(header *rtp.Header, payload []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sealer == nil {
		return ErrUnbound
	}
	if o.buffer == nil {
		o.buffer = udp.NewBuffer()
	}
	// Seal reports whether the packet fits. A packet that does not fit into the empty buffer is an error.
	sealed, err := o.sealer.Seal(o.buffer[o.used:o.used], header, payload)
	if errors.Is(err, srtp.ErrNoRoom) && o.used > 0 {
		o.flush(nil)
		o.buffer = udp.NewBuffer()
		sealed, err = o.sealer.Seal(o.buffer[:0], header, payload)
	}
	if err != nil {
		o.release()
		return err
	}
	o.sent.count(len(sealed))
	o.append(len(sealed))
	if o.copied.Load() && o.path.second.Load() != nil {
		o.queueCopy(len(sealed))
	}
	if o.doubled.Load() {
		o.double(len(sealed))
	}
	return nil
}

// double queues the packet of the given length, which ends the used bytes, again if there is room.
func (o *outbox) double(length int) {
	if len(o.buffer)-o.used >= length {
		copy(o.buffer[o.used:], o.buffer[o.used-length:o.used])
		o.append(length)
	}
}

// release returns an empty buffer to its pool.
func (o *outbox) release() {
	if o.buffer != nil && o.used == 0 {
		o.buffer.Release()
		o.buffer = nil
	}
}

// append adds the packet of the given length, which follows the used bytes, to the last run or to a new run.
func (o *outbox) append(length int) {
	begin := o.used
	o.used += length
	stamp, codepoint := o.stamp, ecn.Codepoint(o.ecn.Load())
	o.stamp = false
	if n := len(o.messages); n > 0 && !o.short && !stamp {
		last := &o.messages[n-1]
		if length <= last.Segment && len(last.Data) < outboxRun*last.Segment && codepoint == last.ECN {
			last.Data = o.buffer[begin-len(last.Data) : o.used]
			o.short = length < last.Segment
			return
		}
	}
	o.messages = append(o.messages, udp.Message{
		Data: o.buffer[begin:o.used], Segment: length, ECN: codepoint, Stamped: stamp,
	})
	o.short = false
}

// post hands the queued packets to the batch, which sends them with the packets of other peers. Without a batch, or if
// media passes through ICE, post sends at once.
func (o *outbox) post(batch *Batch) {
	var post *udp.Post
	if batch != nil {
		post = &batch.post
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(post)
}

// stampNext requests the departure time of the packet that is queued next.
func (o *outbox) stampNext() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stamp = true
}

// flush sends the queued packets, or hands them to the post. The caller holds the mutex.
func (o *outbox) flush(post *udp.Post) {
	if o.buffer == nil {
		return
	}
	route := o.path.route.Load()
	if len(o.copies) > 0 {
		if route == nil || route.silent {
			// The post does not receive the buffer.
			o.flushCopies(nil)
		} else {
			o.flushCopies(post)
		}
	}
	if route != nil {
		for i := range o.messages {
			o.messages[i].Peer = route.address
		}
		if route.silent {
			route.port.mux.AddUnconsented(o.datagrams())
		} else if post != nil && o.used > 0 {
			if route.apart {
				o.addStamped(post, route.port.Sockets()[0])
			}
			post.Add(route.socket, o.messages, o.buffer)
			o.buffer = nil
		} else {
			// Packets that cannot be sent are lost, as on the network. The port counts them.
			_ = route.socket.Send(o.messages)
		}
	} else {
		for _, message := range o.messages {
			o.path.sendThrough(message)
		}
	}
	clear(o.messages)
	o.used, o.messages, o.short = 0, o.messages[:0], false
	o.release()
}

// datagrams returns the number of queued datagrams.
func (o *outbox) datagrams() (count int) {
	for _, message := range o.messages {
		count += message.Count()
	}
	return count
}

// addStamped hands the messages with a requested departure time to the post. They leave from a socket that is read: the
// kernel reports departures to the sending socket, and bounds the number of pending reports (udp.Message).
func (o *outbox) addStamped(post *udp.Post, from *udp.Socket) {
	rest := o.messages[:0]
	for _, message := range o.messages {
		if message.Stamped {
			post.Add(from, []udp.Message{message}, nil)
		} else {
			rest = append(rest, message)
		}
	}
	clear(o.messages[len(rest):])
	o.messages = rest
}

// discard drops the queued packets. The outbox accepts no more packets.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used, o.messages, o.copies, o.sealer = 0, nil, nil, nil
	o.release()
	o.rtcp.Lock()
	defer o.rtcp.Unlock()
	o.rtcpSealer = nil
}

// open sets the keys. From now on packets are encrypted.
func (o *outbox) open(sealer *srtp.Sealer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rtcp.Lock()
	defer o.rtcp.Unlock()
	o.sealer, o.rtcpSealer, o.sealed = sealer, sealer, make([]byte, 0, rtcpBytes)
}

// setRTCP sets the codepoint of RTCP packets after an RTP packet has arrived with a codepoint. RTCP leaves as ECT(1)
// while RTP arrives as ECT(1) or CE: the remote peer then reads codepoints, and reports leave behind short queues. RTCP
// returns to Not-ECT with the remote peer, which does so if the path drops ECT(1), perhaps in this direction only.
func (o *outbox) setRTCP(arrived ecn.Codepoint) {
	codepoint := ecn.NotECT
	if arrived.L4S() {
		codepoint = ecn.ECT1
	}
	o.rtcpECN.Store(uint32(codepoint))
}

// writeRTCP sends packets as one compound packet, at once, on all routes. Without keys, nothing is sent.
func (o *outbox) writeRTCP(packets []rtcp.Packet) error {
	compound, err := rtcp.Marshal(packets)
	if err != nil {
		return err
	}
	o.rtcp.Lock()
	defer o.rtcp.Unlock()
	if o.rtcpSealer == nil {
		return nil
	}
	sealed, err := o.rtcpSealer.SealRTCP(o.sealed, compound)
	if err != nil {
		return err
	}
	if second := o.path.second.Load(); second != nil {
		_ = second.socket.Send([]udp.Message{{Peer: second.address, Data: sealed, Segment: len(sealed)}})
	}
	message := udp.Message{Data: sealed, Segment: len(sealed), ECN: ecn.Codepoint(o.rtcpECN.Load())}
	if route := o.path.route.Load(); route != nil {
		if route.silent {
			return nil
		}
		message.Peer = route.address
		return route.socket.Send([]udp.Message{message})
	}
	o.path.sendThrough(message)
	return nil
}
