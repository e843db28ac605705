package frames

import (
	"sync"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
)

// pageParts is the number of parts of a frame that are allocated at a time: 73 kB of a frame. A frame that claims the
// 14,665 fragments of 16 MiB begins with a table of 230 pages, 1.8 kB, and a page of 2.5 kB for its first fragment.
const pageParts = 64

// chunkFrame is a frame that is reassembled from packets. The memory follows the fragments that have arrived, not the
// length that the frame claims.
type chunkFrame struct {
	descriptor payload.Descriptor
	timestamp  uint32
	// pages are nil if none of their fragments has arrived.
	pages   []*partPage
	missing int
	// discarded is set if memory ran out. Nothing is kept of the frame then.
	discarded bool
}

// partPage is a run of successive parts.
type partPage [pageParts]chunkPart

// chunkPart is one fragment and the sequence number of its packet. data is nil until the fragment has arrived.
type chunkPart struct {
	data     *[payload.FragmentSize]byte
	came     time.Time
	size     uint16
	sequence uint16
}

// The memory of frames, pages and parts for reuse.
var (
	spareFrames = sync.Pool{New: func() any { return new(chunkFrame) }}
	sparePages  = sync.Pool{New: func() any { return new(partPage) }}
	fragments   = sync.Pool{New: func() any { return new([payload.FragmentSize]byte) }}
)

// The memory of pages and parts that counts in an allotment, in bytes.
const (
	pageBytes = int(unsafe.Sizeof(partPage{}))
	partBytes = payload.FragmentSize
)

// newChunkFrame begins a frame.
func newChunkFrame(d *payload.Descriptor, timestamp uint32) *chunkFrame {
	f := spareFrames.Get().(*chunkFrame)
	pages := (int(d.Source) + pageParts - 1) / pageParts
	if cap(f.pages) < pages {
		f.pages = make([]*partPage, pages)
	}
	*f = chunkFrame{descriptor: *d, timestamp: timestamp, pages: f.pages[:pages], missing: int(d.Source)}
	return f
}

// part returns a part of a complete frame.
func (f *chunkFrame) part(index int) *chunkPart { return &f.pages[index/pageParts][index%pageParts] }

// take stores a fragment. ok is false if there is no memory for the fragment. whole is set if the fragment completes
// the frame.
func (f *chunkFrame) take(room *packetlog.Allotment, d *payload.Descriptor, data []byte, sequence uint16,
	now time.Time) (whole, ok bool) {
	page := &f.pages[d.Index/pageParts]
	switch {
	case *page == nil:
		if !room.Reserve(pageBytes + partBytes) {
			return false, false
		}
		*page = sparePages.Get().(*partPage)
	case (*page)[d.Index%pageParts].data != nil:
		return false, true
	case !room.Reserve(partBytes):
		return false, false
	}
	p := f.part(int(d.Index))
	p.data = fragments.Get().(*[payload.FragmentSize]byte)
	p.size, p.sequence, p.came = uint16(copy(p.data[:], data)), sequence, now
	f.missing--
	return f.missing == 0, true
}

// append appends the bytes of a complete frame from begin to before end.
func (f *chunkFrame) append(dst []byte, begin, end uint64) []byte {
	for begin < end {
		p := f.part(int(begin / payload.FragmentSize))
		within := begin % payload.FragmentSize
		data := p.data[within:min(uint64(p.size), within+end-begin)]
		dst = append(dst, data...)
		begin += uint64(len(data))
	}
	return dst
}

// discard discards the fragments of the frame, including later ones.
func (f *chunkFrame) discard(room *packetlog.Allotment) {
	f.discarded = true
	f.empty(room)
}

// release releases the memory of the frame and the frame itself.
func (f *chunkFrame) release(room *packetlog.Allotment) {
	f.empty(room)
	spareFrames.Put(f)
}

func (f *chunkFrame) empty(room *packetlog.Allotment) {
	bytes := 0
	for i, page := range f.pages {
		if page == nil {
			continue
		}
		for n := range page {
			if p := &page[n]; p.data != nil {
				fragments.Put(p.data)
				p.data = nil
				bytes += partBytes
			}
		}
		sparePages.Put(page)
		f.pages[i] = nil
		bytes += pageBytes
	}
	room.Release(bytes)
}
