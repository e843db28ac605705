package realsense

import (
	"sync"
	"time"
)

// mailbox is where cameras leave their newest image for the reader. A picture that was not read is overwritten: the reader wants the newest.
type mailbox struct {
	mu    sync.Mutex
	boxes []box
	wake  chan struct{} // has an element after something changed
}

// box is one camera's. Its picture goes round between camera, box and reader, so that none of them waits and nothing is copied.
type box struct {
	picture *picture
	news    news
}

// news is what happened at a camera since the reader looked.
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

// put leaves a picture and returns another for the next one.
func (m *mailbox) put(camera int, p *picture, capture, arrival time.Time) *picture {
	m.mu.Lock()
	b := &m.boxes[camera]
	p, b.picture = b.picture, p
	b.news = news{true, true, capture, arrival}
	m.mu.Unlock()
	m.ring()
	return p
}

// leave says that a camera is gone, and arrive that it is back.
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

// look returns a camera's news and, where its picture is fresh, that picture in exchange for the one given.
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
