package layers

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// audience is those who receive.
type audience struct {
	sessions []*client.Session
	running  sync.WaitGroup

	mu      sync.Mutex
	records []frametimes.Record
	// frames are the numbers of whole frames by receiver.
	frames map[int][]int64
}

// drain takes what a session tells, to no end.
func (a *audience) drain(session *client.Session) {
	a.running.Go(func() {
		for range session.Events() { //nolint:revive // events must be taken
		}
	})
}

// receive takes what comes to a receiver until its session ends.
func (a *audience) receive(session *client.Session) {
	place := len(a.sessions)
	a.sessions = append(a.sessions, session)
	a.drain(session)
	a.running.Go(func() {
		for f := range session.Frames() {
			now := time.Now()
			session.FrameDecoded(&f, now, now)
			a.mu.Lock()
			if a.frames == nil {
				a.frames = make(map[int][]int64)
			}
			a.frames[place] = append(a.frames[place], f.Number)
			a.mu.Unlock()
		}
	})
	a.running.Go(func() {
		for r := range session.FrameTimes() {
			a.mu.Lock()
			a.records = append(a.records, r)
			a.mu.Unlock()
		}
	})
}

// present is how many receivers got something.
func (a *audience) present() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.frames)
}

// leave ends all sessions.
func (a *audience) leave(source *client.Session) {
	_ = source.Close()
	for _, session := range a.sessions {
		_ = session.Close()
	}
	a.running.Wait()
}

// sum sums up the frames of numbers between two.
func (a *audience) sum(from, until uint32) *stayed {
	a.mu.Lock()
	defer a.mu.Unlock()
	within := func(number int64) bool { return number >= int64(from) && number < int64(until) }
	s := &stayed{sent: int(until-from) * len(parts)}
	for _, numbers := range a.frames {
		for _, n := range numbers {
			if within(n) {
				s.arrived++
			}
		}
	}
	for i := range a.records {
		r := &a.records[i]
		if !within(r.Frame) {
			continue
		}
		layers := r.Layers()
		for layer, d := range map[frametimes.Layer]*lab.Distribution{
			frametimes.ServerHold: &s.hold, frametimes.ServerDistribution: &s.distribution, frametimes.Frame: &s.frame,
		} {
			if v, known := layers.Get(layer); known {
				d.Add(v)
			}
		}
	}
	return s
}
