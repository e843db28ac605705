package netem

// PacketPool recycles packets and their payload buffers. A Link or Queue returns dropped packets to their pool; the
// receiver returns delivered packets. It belongs to one goroutine. The zero value is an empty pool.
type PacketPool struct{ free []*Packet }

// Get returns a packet with zero fields, except for the capacity of its payload.
func (f *PacketPool) Get() *Packet {
	if last := len(f.free) - 1; last >= 0 {
		p := f.free[last]
		f.free = f.free[:last]
		return p
	}
	return &Packet{pool: f}
}

// Put returns an unused packet to the pool.
func (f *PacketPool) Put(p *Packet) {
	*p = Packet{Payload: p.Payload[:0], pool: f}
	f.free = append(f.free, p)
}

// discard returns a dropped packet to its pool; a packet without a pool is left to the garbage collector.
func (p *Packet) discard() {
	if p.pool != nil {
		p.pool.Put(p)
	}
}
