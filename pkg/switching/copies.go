package switching

import (
	"sync"
	"time"

	"github.com/pion/rtp"
)

// copySize is the largest packet that is kept for retransmission: what fits the MTU of Ethernet.
const copySize = 1500

var copyPool = sync.Pool{New: func() any { return new([copySize]byte) }}

// copies keeps the latest packets of a stream as they were sent, by output number. Their memory is bounded.
type copies struct {
	ring  []packetCopy
	limit int // of packets
	count int
	// Numbers from oldest to newest may be present.
	oldest, newest int64
}

type packetCopy struct {
	number int64
	data   *[copySize]byte // nil where the slot is empty
	size   int
	resent time.Time
}

// newCopies bounds the memory to bytes. Below the size of one packet nothing is kept.
func newCopies(bytes int) *copies { return &copies{limit: bytes / copySize} }

func (c *copies) slot(number int64) *packetCopy { return &c.ring[number&int64(len(c.ring)-1)] }

// add keeps a copy of a packet. Packets that are larger than the MTU, or older than all that is kept, are not kept.
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
		header.Padding, header.PaddingSize = false, 0 // it is not part of body
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

// get returns the copy of a packet, nil where there is none.
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

// clear gives all memory back.
func (c *copies) clear() {
	for i := range c.ring {
		c.drop(c.ring[i].number)
	}
	c.ring, c.limit = nil, 0
}
