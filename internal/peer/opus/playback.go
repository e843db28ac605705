package opus

import "time"

// Playback is a recording in a loop: which packet is due when. It is stepped with now and belongs to one goroutine.
type Playback struct {
	recording *Recording
	next      int
	due       time.Time
}

// NewPlayback begins a recording at a time.
func NewPlayback(recording *Recording, start time.Time) *Playback {
	return &Playback{recording: recording, due: start}
}

// Due is when the next packet begins to sound.
func (p *Playback) Due() time.Time { return p.due }

// maxLag is what a sound card's buffer would hold: who falls back further has been suspended, and goes on from now.
const maxLag = 500 * time.Millisecond

// Next gives the next packet and when it begins, if it is due by now.
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
