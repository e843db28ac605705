package transport

import (
	"errors"
	"sync"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/srtp"
	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// outboxRun is how many datagrams one segmented send takes (UDP_MAX_SEGMENTS).
	outboxRun = 64
	// rtcpBytes holds the compounds that are sent: 50 report blocks of 24 bytes and what goes around them.
	rtcpBytes = 1500
)

// outbox seals packets of one peer and collects them until they are sent. Its mutex is the peer's own.
type outbox struct {
	path *path

	mu     sync.Mutex
	sealer *srtp.Sealer
	// buffer is nil while nothing waits; used is how much of it is filled.
	buffer *udp.Buffer
	used   int
	// messages are the runs in the buffer. The last one takes more packets while they have its segment's length, and
	// ends with a shorter one.
	messages []udp.Message
	// short is set when the last run has ended.
	short bool
	// stamp asks for the time at which the next packet leaves.
	stamp bool

	rtcp       sync.Mutex
	rtcpSealer *srtp.Sealer
	sealed     [rtcpBytes]byte
}

// queue seals a packet into the outbox. What finds it full sends what is in it first.
func (o *outbox) queue(header *rtp.Header, payload []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sealer == nil {
		return ErrUnbound
	}
	if o.buffer == nil {
		o.buffer = udp.NewBuffer()
	}
	// The sealer says when a packet does not fit; a packet that does not fit the empty buffer fits nowhere.
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
	o.append(len(sealed))
	return nil
}

// release gives an empty buffer back.
func (o *outbox) release() {
	if o.buffer != nil && o.used == 0 {
		o.buffer.Release()
		o.buffer = nil
	}
}

// append takes the packet of that length that stands behind what is used into the last run, or begins another.
func (o *outbox) append(length int) {
	begin := o.used
	o.used += length
	stamp := o.stamp
	o.stamp = false
	if n := len(o.messages); n > 0 && !o.short && !stamp {
		last := &o.messages[n-1]
		if length <= last.Segment && len(last.Data) < outboxRun*last.Segment {
			last.Data = o.buffer[begin-len(last.Data) : o.used]
			o.short = length < last.Segment
			return
		}
	}
	o.messages = append(o.messages, udp.Message{Data: o.buffer[begin:o.used], Segment: length, Stamped: stamp})
	o.short = false
}

// post leaves what waits to the batch, which sends it with the packets of other peers. Without a batch, and if media
// goes through ICE, post sends at once.
func (o *outbox) post(batch *Batch) {
	var post *udp.Post
	if batch != nil {
		post = &batch.post
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(post)
}

// stampNext asks for the time at which the packet leaves that is queued next.
func (o *outbox) stampNext() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stamp = true
}

// flush sends what waits, or leaves it to the post. The caller holds the mutex.
func (o *outbox) flush(post *udp.Post) {
	if o.buffer == nil {
		return
	}
	if route := o.path.route.Load(); route != nil {
		for i := range o.messages {
			o.messages[i].Peer = route.address
		}
		if route.silent {
			o.path.endpoint.mux.AddUnconsented(o.datagrams())
		} else if post != nil && o.used > 0 {
			if route.apart {
				o.addStamped(post, o.path.endpoint.port.Sockets()[0])
			}
			post.Add(route.socket, o.messages, o.buffer)
			o.buffer = nil
		} else {
			// What cannot be sent is lost, as it might be on the network; the port counts it.
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

// datagrams counts what waits.
func (o *outbox) datagrams() (count int) {
	for _, message := range o.messages {
		count += message.Count()
	}
	return count
}

// addStamped leaves the messages that a departure stamp is asked for to the post. They leave from a socket that is
// read: the kernel tells departures to the socket that has sent, and bounds how many it owes (udp.Message).
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

// discard forgets what waits and takes nothing more.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used, o.messages, o.sealer = 0, nil, nil
	o.release()
	o.rtcp.Lock()
	defer o.rtcp.Unlock()
	o.rtcpSealer = nil
}

// open takes the keys: from here on packets are sealed.
func (o *outbox) open(sealer *srtp.Sealer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rtcp.Lock()
	defer o.rtcp.Unlock()
	o.sealer, o.rtcpSealer = sealer, sealer
}

// writeRTCP sends packets as one compound packet, at once. Without keys, nothing is sent.
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
	sealed, err := o.rtcpSealer.SealRTCP(o.sealed[:0], compound)
	if err != nil {
		return err
	}
	message := udp.Message{Data: sealed, Segment: len(sealed)}
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
