package netem

// PacketPool recycles packets and their payload buffers. A Link or Queue that drops a packet gives it back to the pool that it came from; one that was delivered is given back by
// whoever got it. It belongs to one goroutine. The zero value is an empty pool.
type PacketPool struct{ free []*Packet }

// Get returns a packet whose fields are zero but for the capacity of its payload.
func (f *PacketPool) Get() *Packet {
	if last := len(f.free) - 1; last >= 0 {
		p := f.free[last]
		f.free = f.free[:last]
		return p
	}
	return &Packet{pool: f}
}

// Put gives a packet back that nobody holds any more.
func (f *PacketPool) Put(p *Packet) {
	*p = Packet{Payload: p.Payload[:0], pool: f}
	f.free = append(f.free, p)
}

// discard gives a dropped packet back to its pool; without one it is left to the garbage collector.
func (p *Packet) discard() {
	if p.pool != nil {
		p.pool.Put(p)
	}
}
