package peer

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
)

// arrival is a chunk or a request on its way.
type arrival struct {
	at    time.Duration
	chunk payload.Chunk
	// ask are the numbers of a request.
	ask []uint16
}

// path is everything on its way, the earliest first. It implements heap.Interface.
type path []arrival

func (p path) Len() int           { return len(p) }
func (p path) Less(i, j int) bool { return p[i].at < p[j].at }
func (p path) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *path) Push(a any)        { *p = append(*p, a.(arrival)) }
func (p *path) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// TestMissingChunks sends frames of 1 to 20 chunks at 10 frames per second over a path that loses 5 % in each
// direction, in virtual time. The publisher repeats a chunk for each request.
func TestMissingChunks(t *testing.T) {
	const frames, interval, loss = 5000, 100 * time.Millisecond, 0.05
	for _, trip := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		random := rand.New(rand.NewPCG(5, uint64(trip)))
		start := time.Unix(1000, 0)
		missing, assembler := newMissingChunks(), payload.NewChunkAssembler(1<<20)
		sent := make(map[uint16]payload.Chunk)
		var on path
		send := func(at time.Duration, a arrival) {
			if random.Float64() >= loss {
				a.at = at + trip/2
				heap.Push(&on, a)
			}
		}
		whole, repeats, number := 0, 0, uint16(65_000)
		var wake time.Time
		for frame := range uint32(frames) {
			begins := time.Duration(frame) * interval
			length := uint32(1 + random.IntN(20*payload.NumberedChunkSize))
			c := payload.Chunk{Numbered: true, Frame: frame, Length: length}
			for c.Index = 0; int(c.Index) < c.Count(); c.Index++ {
				c.Number = number
				c.Data = make([]byte, min(c.Size(), int(c.Length)-int(c.Index)*c.Size()))
				sent[number] = c
				send(begins, arrival{chunk: c})
				number++
			}
			for at := begins; at < begins+interval; {
				at = begins + interval
				if len(on) > 0 {
					at = min(at, on[0].at)
				}
				if !wake.IsZero() {
					at = min(at, max(wake.Sub(start), begins))
				}
				now := start.Add(at)
				for len(on) > 0 && on[0].at <= at {
					a := heap.Pop(&on).(arrival)
					for _, asked := range a.ask {
						repeats++
						send(at, arrival{chunk: sent[asked]})
					}
					if a.ask == nil {
						missing.received(&a.chunk, now)
						if _, is, err := assembler.Take(&a.chunk); err != nil {
							t.Fatal(err)
						} else if is {
							whole++
						}
					}
				}
				var ask []uint16
				if ask, wake = missing.due(now, trip); len(ask) > 0 {
					send(at, arrival{ask: ask})
				}
			}
		}
		t.Logf("round trip %v: %d of %d frames, %d repeated chunks", trip, whole, frames, repeats)
		if whole < frames*998/1000 {
			t.Errorf("round trip %v: %d of %d frames", trip, whole, frames)
		}
		if limit := frames * 11; repeats > limit {
			t.Errorf("round trip %v: %d repeated chunks, expected at most %d", trip, repeats, limit)
		}
	}
}

// TestRequestsOfGaps sends chunks whose numbers leap: the requests stay bounded.
func TestRequestsOfGaps(t *testing.T) {
	missing := newMissingChunks()
	now := time.Unix(1000, 0)
	asked := 0
	for n := range 1000 {
		c := payload.Chunk{Numbered: true, Frame: uint32(n), Length: 1, Number: uint16(n * 16_000), Data: []byte{1}}
		missing.received(&c, now)
		ask, _ := missing.due(now, time.Millisecond)
		if len(ask) > maxRequested {
			t.Fatalf("%d chunks are requested at once", len(ask))
		}
		asked += len(ask)
		now = now.Add(time.Millisecond)
	}
	// 512 at once and 1,000 in the second, each requested 8 times and more.
	if asked > 20_000 {
		t.Errorf("%d chunks are requested in a second", asked)
	}
}
