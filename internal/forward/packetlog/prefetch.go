package packetlog

import "unsafe"

// A reader that comes tens of milliseconds after the packets finds them in no cache of its core. Each packet costs such
// a reader several accesses to memory, one after the other. The functions below begin these accesses early, so that
// they take place at the same time. They neither take references nor read anything that changes.

// cacheLine is the size of a line of the processor's caches.
const cacheLine = 64

// PrefetchPacket begins to load the packet at a position, which a caller of At will need.
func (l *Log) PrefetchPacket(position int64) {
	if p := l.ring.Load().entry(position).Load(); p != nil {
		prefetch(unsafe.Pointer(p), 1)
		prefetch(unsafe.Pointer(&p.Payload), int(unsafe.Sizeof(p.Payload)+unsafe.Sizeof(p.buffer))/cacheLine+1)
	}
}

// PrefetchPayload begins to load the payload of the packet at a position, up to a number of bytes. PrefetchPacket was
// called before.
func (l *Log) PrefetchPayload(position int64, bytes int) {
	// The buffer of a packet never changes.
	if p := l.ring.Load().entry(position).Load(); p != nil {
		prefetch(unsafe.Pointer(unsafe.SliceData(p.buffer)), min(bytes, len(p.buffer))/cacheLine)
	}
}
