package paths

import "time"

// A number passes three stages in the order of arrival of its first copy.
const (
	stageSlow     = iota // half the deadline after its usual arrival
	stageDeadline        // at the deadline
	stageLost            // lossWait after the deadline
	stages
)

// maxPending bounds the pending numbers. At 4,000 samples/s, with deadline and lossWait of 0.3 s together, 1,200
// numbers are pending; a gap adds up to 2,048.
const maxPending = 4096

// number is a sampled number of which copies may still arrive.
type number struct {
	flow   uint8
	number uint32
	known  bool          // a copy has arrived; else set and sent are estimates
	sent   time.Duration // arrival of a copy whose delay is 0 as the Observer counts delays
	set    Set

	arrived Set // copies that have arrived
	inTime  Set // of these, copies in time
	usual   Set // of these, copies that are not slow
}

// pending holds the numbers that are not yet judged in all stages, oldest first.
type pending struct {
	ring  []number
	index map[uint64]uint64 // flow and number to position
	first uint64            // position of the oldest number
	next  uint64            // position of the next number
	stage [stages]uint64    // position of the first number that is not judged in the stage
}

func newPending() pending {
	return pending{ring: make([]number, maxPending), index: make(map[uint64]uint64)}
}

func (p *pending) at(position uint64) *number { return &p.ring[position%maxPending] }

func numberKey(flow uint8, number uint32) uint64 { return uint64(flow)<<32 | uint64(number) }

// find returns a pending number, or nil.
func (p *pending) find(flow uint8, number uint32) *number {
	position, ok := p.index[numberKey(flow, number)]
	if !ok {
		return nil
	}
	return p.at(position)
}

// add appends a number. If there is no room, the oldest number is forgotten.
func (p *pending) add(n number) *number {
	if p.next-p.first == maxPending {
		p.forget()
	}
	*p.at(p.next) = n
	p.index[numberKey(n.flow, n.number)] = p.next
	p.next++
	return p.at(p.next - 1)
}

// forget removes the oldest number.
func (p *pending) forget() {
	n := p.at(p.first)
	delete(p.index, numberKey(n.flow, n.number))
	p.first++
	for i := range p.stage {
		p.stage[i] = max(p.stage[i], p.first)
	}
}

// drop forgets all numbers.
func (p *pending) drop() {
	clear(p.index)
	p.first = p.next
	for i := range p.stage {
		p.stage[i] = p.next
	}
}

// judge passes the numbers that wait for a stage to judged, until judged returns false: the number's time has not come.
// Numbers that have passed the last stage are forgotten.
func (p *pending) judge(stage int, judged func(*number) bool) {
	for p.stage[stage] < p.next && judged(p.at(p.stage[stage])) {
		p.stage[stage]++
	}
	for p.first < p.stage[stageLost] {
		p.forget()
	}
}
