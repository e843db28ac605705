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
	news    news
}

// news describes the events at a camera since the reader's last look.
type news struct {
	there            bool
	fresh            bool
	capture, arrival time.Time
}

func newMailbox(cameras int) *mailbox {
	m := &mailbox{boxes: make([]box, cameras), wake: make(chan struct{}, 1)}
	for i := range m.boxes {
		m.boxes[i] = box{picture: new(picture), news: news{there: true}}
	}
	return m
}

// put stores a picture and returns another one for the next image.
func (m *mailbox) put(camera int, p *picture, capture, arrival time.Time) *picture {
	m.mu.Lock()
	b := &m.boxes[camera]
	p, b.picture = b.picture, p
	b.news = news{true, true, capture, arrival}
	m.mu.Unlock()
	m.ring()
	return p
}

// leave and arrive record that a camera was lost or has returned.
func (m *mailbox) leave(camera int)  { m.set(camera, false) }
func (m *mailbox) arrive(camera int) { m.set(camera, true) }

func (m *mailbox) set(camera int, there bool) {
	m.mu.Lock()
	m.boxes[camera].news = news{there: there}
	m.mu.Unlock()
	m.ring()
}

func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// look returns the news of a camera. If its picture is new, look exchanges it for the given one.
func (m *mailbox) look(camera int, p *picture) (news, *picture) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &m.boxes[camera]
	found := b.news
	if found.fresh {
		p, b.picture = b.picture, p
		b.news.fresh = false
	}
	return found, p
}
