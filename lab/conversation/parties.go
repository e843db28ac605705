package conversation

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// parties are the participants of a conversation.
type parties struct {
	rate      float64
	camera    *camera
	sender    *client.Session
	receivers []*client.Session
	running   sync.WaitGroup

	mu      sync.Mutex
	records []frametimes.Record
	got     int
	// numbers are the numbers of the frames at each of the other receivers.
	numbers [][]int64
	// stays are the times of each frame in the server, by its number.
	stays map[int64]stay
}

// stay is the time from the first packet of a frame that the server read to the last packet that the server sent, over
// the receivers that reported it.
type stay struct {
	firstIn, lastOut int64
	receivers        int
}

// receive reads all messages and frames of a receiver until its session ends. The first receiver makes meshes.
func (p *parties) receive(session *client.Session) {
	first := len(p.receivers) == 0
	p.receivers = append(p.receivers, session)
	p.running.Go(func() { discard(session.Events()) })
	if first {
		p.running.Go(func() { p.draw(session) })
	} else {
		p.mu.Lock()
		at := len(p.numbers)
		p.numbers = append(p.numbers, nil)
		p.mu.Unlock()
		p.running.Go(func() { p.count(session.Frames(), at) })
	}
	p.running.Go(func() {
		for r := range session.FrameTimes() {
			p.note(r, first)
		}
	})
}

// note stores a record of a receiver.
func (p *parties) note(r frametimes.Record, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first && r.Has(frametimes.Decoded) {
		p.records = append(p.records, r)
	}
	if !r.Has(frametimes.ServerFirstIn) || !r.Has(frametimes.ServerLastOut) {
		return
	}
	in, out := r.Times[frametimes.ServerFirstIn], r.Times[frametimes.ServerLastOut]
	s, known := p.stays[r.Frame]
	if !known {
		s = stay{firstIn: in, lastOut: out}
	}
	if p.stays == nil {
		p.stays = make(map[int64]stay)
	}
	p.stays[r.Frame] = stay{min(s.firstIn, in), max(s.lastOut, out), s.receivers + 1}
}

// distributed returns the distributions of the frames in a range of numbers that arrived at all receivers. For other
// frames, the time of the last packet is unknown.
func (p *parties) distributed(from, until uint32) (all []Distribution) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for frame, s := range p.stays {
		if frame >= int64(from) && frame < int64(until) && s.receivers == len(p.receivers) {
			all = append(all, Distribution{frame, time.Duration(s.lastOut - s.firstIn)})
		}
	}
	slices.SortFunc(all, func(a, b Distribution) int { return cmp.Compare(a.Frame, b.Frame) })
	return all
}

// draw makes meshes of the frames.
func (p *parties) draw(session *client.Session) {
	var m mesh
	for frame := range session.Frames() {
		began := time.Now()
		if m.extract(frame.Data) {
			session.FrameDecoded(&frame, began, time.Now())
			p.mu.Lock()
			p.got++
			p.mu.Unlock()
		}
	}
}

// count notes the numbers of the frames at another receiver.
func (p *parties) count(frames <-chan client.Frame, receiver int) {
	for frame := range frames {
		if len(frame.Data) == FrameBytes {
			p.mu.Lock()
			p.numbers[receiver] = append(p.numbers[receiver], frame.Number)
			p.mu.Unlock()
		}
	}
}

// counted returns the number of frames in a range of numbers, at each receiver except the first.
func (p *parties) counted(from, until uint32) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make([]int, len(p.numbers))
	for i, numbers := range p.numbers {
		for _, n := range numbers {
			if n >= int64(from) && n < int64(until) {
				counts[i]++
			}
		}
	}
	return counts
}

// discard discards all values of a channel.
func discard[T any](from <-chan T) {
	for range from {
		continue
	}
}

// leave ends all sessions.
func (p *parties) leave() {
	_ = p.sender.Close()
	for _, session := range p.receivers {
		_ = session.Close()
	}
	p.running.Wait()
}

func (p *parties) drawn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// recordsOf returns the records of the frames that were captured between two times, in their order.
func (p *parties) recordsOf(from, until time.Time) []frametimes.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	records := slices.DeleteFunc(slices.Clone(p.records), func(r frametimes.Record) bool {
		at := r.Time(frametimes.Captured)
		return at.Before(from) || !at.Before(until)
	})
	slices.SortFunc(records, func(a, b frametimes.Record) int { return cmp.Compare(a.Frame, b.Frame) })
	return records
}
