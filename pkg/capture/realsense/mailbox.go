package realsense

import (
	"sync"
	"time"
)

// mailbox passes the newest image of each camera to the reader. Unread pictures are overwritten:
// the reader needs the newest only.
type mailbox struct {
	mu    sync.Mutex
	boxes []box
	wake  chan struct{} // has an element after a change
}

// box is the slot of one camera. The picture circulates between camera, box and reader, so that nobody waits and
// nothing is copied.
type box struct {
	picture *picture
	update  update
}

// update describes the events at a camera since the reader's last call.
type update struct {
	present          bool
	fresh            bool
	capture, arrival time.Time
}

func newMailbox(cameras int) *mailbox {
	m := &mailbox{boxes: make([]box, cameras), wake: make(chan struct{}, 1)}
	for i := range m.boxes {
		m.boxes[i] = box{picture: new(picture), update: update{present: true}}
	}
	return m
}

// put stores a picture and returns another one for the next image.
func (m *mailbox) put(camera int, p *picture, capture, arrival time.Time) *picture {
	m.mu.Lock()
	b := &m.boxes[camera]
	p, b.picture = b.picture, p
	b.update = update{true, true, capture, arrival}
	m.mu.Unlock()
	m.wakeReader()
	return p
}

// setAbsent and setPresent record that a camera was lost or has returned.
func (m *mailbox) setAbsent(camera int)  { m.set(camera, false) }
func (m *mailbox) setPresent(camera int) { m.set(camera, true) }

func (m *mailbox) set(camera int, there bool) {
	m.mu.Lock()
	m.boxes[camera].update = update{present: there}
	m.mu.Unlock()
	m.wakeReader()
}

func (m *mailbox) wakeReader() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// exchange returns the changes at a camera. If the camera's picture is new, exchange returns that picture and stores
// the given one in its place.
func (m *mailbox) exchange(camera int, p *picture) (update, *picture) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &m.boxes[camera]
	found := b.update
	if found.fresh {
		p, b.picture = b.picture, p
		b.update.fresh = false
	}
	return found, p
}
