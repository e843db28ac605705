package switching

import (
	"sync"
	"time"

	"github.com/pion/rtp"
)

// copySize is the size of the largest packet kept for retransmission: the MTU of Ethernet.
const copySize = 1500

var copyPool = sync.Pool{New: func() any { return new([copySize]byte) }}

// copies holds the latest packets of a stream as they were sent, by output number. The memory is
// bounded.
type copies struct {
	ring  []packetCopy
	limit int // in packets
	count int
	// Only numbers from oldest to newest can be present.
	oldest, newest int64
}

type packetCopy struct {
	number int64
	data   *[copySize]byte // nil if the entry is empty
	size   int
	resent time.Time
}

// newCopies returns copies limited to the given number of bytes. If the limit is below the size of
// one packet, no packet is kept.
func newCopies(bytes int) *copies { return &copies{limit: bytes / copySize} }

func (c *copies) slot(number int64) *packetCopy { return &c.ring[number&int64(len(c.ring)-1)] }

// add stores a copy of a packet. Packets larger than the MTU, or older than all stored packets when
// there is no room, are not stored.
func (c *copies) add(number int64, h *rtp.Header, body []byte) {
	if c.limit == 0 || h.MarshalSize()+len(body) > copySize {
		return
	}
	if c.ring == nil {
		size := 1
		for size < c.limit {
			size *= 2
		}
		c.ring = make([]packetCopy, size)
		c.oldest, c.newest = number, number-1
	}
	if number < c.oldest {
		if c.newest-number >= int64(len(c.ring)) || c.count == c.limit {
			return
		}
		c.oldest = number
	}
	c.newest = max(c.newest, number)
	for c.oldest < c.newest && (c.count >= c.limit || c.newest-c.oldest >= int64(len(c.ring))) {
		c.drop(c.oldest)
		c.oldest++
	}
	if number < c.oldest {
		return
	}
	c.drop(number)
	header := *h
	if header.PaddingSize > 0 {
		header.Padding, header.PaddingSize = false, 0 // the padding is not part of body
	}
	data := copyPool.Get().(*[copySize]byte)
	n, err := header.MarshalTo(data[:])
	if err != nil {
		copyPool.Put(data)
		return
	}
	*c.slot(number) = packetCopy{number: number, data: data, size: n + copy(data[n:], body)}
	c.count++
}

// get returns the copy of a packet, or nil.
func (c *copies) get(number int64) *packetCopy {
	if len(c.ring) == 0 {
		return nil
	}
	if p := c.slot(number); p.data != nil && p.number == number {
		return p
	}
	return nil
}

func (c *copies) drop(number int64) {
	if p := c.get(number); p != nil {
		copyPool.Put(p.data)
		*p = packetCopy{}
		c.count--
	}
}

// clear releases all memory.
func (c *copies) clear() {
	for i := range c.ring {
		c.drop(c.ring[i].number)
	}
	c.ring, c.limit = nil, 0
}
