package opus

import "time"

// Playback schedules the packets of a recording in a loop. A Playback takes explicit times and is owned by one
// goroutine.
type Playback struct {
	recording *Recording
	next      int
	due       time.Time
}

// NewPlayback returns a playback that begins at start.
func NewPlayback(recording *Recording, start time.Time) *Playback {
	return &Playback{recording: recording, due: start}
}

// Due returns the begin time of the next packet.
func (p *Playback) Due() time.Time { return p.due }

// maxLag is the largest backlog, comparable to a sound card's buffer. A caller with a larger backlog was suspended, and
// playback continues from the present time.
const maxLag = 500 * time.Millisecond

// Next returns the next packet and its begin time, if the packet is due.
func (p *Playback) Next(now time.Time) (packet Packet, begin time.Time, ok bool) {
	if p.due.After(now) {
		return Packet{}, time.Time{}, false
	}
	if now.Sub(p.due) > maxLag {
		p.due = now
	}
	packet, begin = p.recording.Packets[p.next], p.due
	p.next = (p.next + 1) % len(p.recording.Packets)
	p.due = p.due.Add(packet.Duration)
	return packet, begin, true
}
