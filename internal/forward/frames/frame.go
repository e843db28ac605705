package frames

import (
	"sync"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/payload"
)

// pageParts is how many parts of a frame are taken room for at a time: 73 kB of a frame. A frame that claims the 14,665
// fragments of 16 MiB begins with a table of 230 pages, 1.8 kB, and a page of 2.5 kB for what has come of it.
const pageParts = 64

// chunkFrame is a frame that is put together from its packets. It takes as much as has come of it, whatever it claims.
type chunkFrame struct {
	descriptor payload.Descriptor
	timestamp  uint32
	// pages are nil where nothing has come of them.
	pages   []*partPage
	missing int
	// spoilt says that there was no room for the frame: nothing is kept of it.
	spoilt bool
}

// partPage is a run of parts.
type partPage [pageParts]chunkPart

// chunkPart is one fragment, with the number of its packet. Its data is nil before it has come.
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

// What pages and parts count in an allotment, in bytes.
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

// part is a part of a frame that is whole.
func (f *chunkFrame) part(index int) *chunkPart { return &f.pages[index/pageParts][index%pageParts] }

// take takes a fragment, if there is room for it, and reports whether the frame is complete with it.
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

// append appends the bytes from begin to below end of a whole frame.
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

// spoil gives up what has come of the frame, and what is to come.
func (f *chunkFrame) spoil(room *packetlog.Allotment) {
	f.spoilt = true
	f.empty(room)
}

// release gives the frame's memory back, and the frame with it.
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
