package feedback

import "time"

// Sent is a packet as it was sent, kept for retransmission.
type Sent struct {
	Sequence    uint16
	Timestamp   uint32
	Marker      bool
	PayloadType uint8
	// Payload is kept by reference: it must not change while the packet is kept.
	Payload []byte
	// At is the send time of the packet.
	At time.Time
}

// SendHistory keeps the packets that a publisher sent on one track, until they exceed MaxAge or MaxBytes.
type SendHistory struct {
	cfg    HistoryConfig
	ring   []Sent // length is a power of two; the packet with sequence number s is at index s mod len
	newest uint16
	count  int
	bytes  int
}

const (
	minHistory = 256
	// maxHistory is half of the sequence number space: 0.3 s at 1 Gbit/s, 1.6 s at 190 Mbit/s.
	maxHistory = 1 << 15
)

// NewSendHistory returns a history for one track.
func NewSendHistory(cfg HistoryConfig) *SendHistory { return &SendHistory{cfg: cfg} }

// Put adds a packet that was just sent. Its number must follow that of the previous packet; any other number clears the
// history first.
func (h *SendHistory) Put(p Sent) {
	if h.count > 0 && p.Sequence != h.newest+1 {
		h.clear()
	}
	h.Expire(p.At)
	for h.count > 0 && h.bytes+len(p.Payload) > h.cfg.MaxBytes {
		h.drop()
	}
	if h.count == len(h.ring) {
		if h.count < maxHistory {
			h.grow()
		} else {
			h.drop()
		}
	}
	h.ring[int(p.Sequence)&(len(h.ring)-1)] = p
	h.newest = p.Sequence
	h.count++
	h.bytes += len(p.Payload)
}

// Get returns the packet with the given sequence number, if it is still kept. The packet is valid until the next Put or
// Expire.
func (h *SendHistory) Get(sequence uint16) (*Sent, bool) {
	if int(h.newest-sequence) >= h.count {
		return nil, false
	}
	return &h.ring[int(sequence)&(len(h.ring)-1)], true
}

// Expire drops the packets older than MaxAge, for a track that pauses. Put does the same.
func (h *SendHistory) Expire(now time.Time) {
	for h.count > 0 && now.Sub(h.oldest().At) > h.cfg.MaxAge {
		h.drop()
	}
}

// Len returns the number of packets kept, Bytes the size of their payloads.
func (h *SendHistory) Len() int   { return h.count }
func (h *SendHistory) Bytes() int { return h.bytes }

func (h *SendHistory) oldest() *Sent {
	return &h.ring[(int(h.newest)-h.count+1)&(len(h.ring)-1)]
}

func (h *SendHistory) drop() {
	p := h.oldest()
	h.bytes -= len(p.Payload)
	h.count--
	*p = Sent{}
}

func (h *SendHistory) clear() {
	for h.count > 0 {
		h.drop()
	}
}

func (h *SendHistory) grow() {
	ring := make([]Sent, max(minHistory, 2*len(h.ring)))
	for i := range h.count {
		p := h.ring[(int(h.newest)-i)&(len(h.ring)-1)]
		ring[int(p.Sequence)&(len(ring)-1)] = p
	}
	h.ring = ring
}
