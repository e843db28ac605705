package netem

// flight is a heap of the packets on the wire, by arrival, then by order.
type flight []*Packet

func (f flight) Len() int { return len(f) }

func (f flight) Less(i, j int) bool {
	if c := f[i].Arrival.Compare(f[j].Arrival); c != 0 {
		return c < 0
	}
	if f[i].order != f[j].order {
		return f[i].order < f[j].order
	}
	return !f[i].copy && f[j].copy
}

func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

// Push implements heap.Interface.
func (f *flight) Push(x any) { *f = append(*f, x.(*Packet)) }

// Pop implements heap.Interface.
func (f *flight) Pop() any {
	last := len(*f) - 1
	p := (*f)[last]
	(*f)[last] = nil
	*f = (*f)[:last]
	return p
}
