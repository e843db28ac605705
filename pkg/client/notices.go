package client

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// noticeInterval is the least time between two runs of notices: servers take 60 viewpoints per second.
const noticeInterval = time.Second / 60

// notices are messages to the server of which only the newest of a kind counts, and that need no reply. Anybody leaves them, the session's goroutine sends
// them; leaving never waits.
type notices struct {
	// wake is signalled when something is left.
	wake chan struct{}

	mu       sync.Mutex
	sight    *signal.Viewpoint
	poses    map[string]*signal.Pose
	capacity *signal.Uplink
	// sent is when the last run was taken.
	sent time.Time
}

func newNotices() *notices {
	return &notices{wake: make(chan struct{}, 1), poses: make(map[string]*signal.Pose)}
}

func (n *notices) viewpoint(m *signal.Viewpoint) { n.leave(func() { n.sight = m }) }
func (n *notices) pose(m *signal.Pose)           { n.leave(func() { n.poses[m.Publication] = m }) }
func (n *notices) uplink(m *signal.Uplink)       { n.leave(func() { n.capacity = m }) }

func (n *notices) leave(change func()) {
	n.mu.Lock()
	change()
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take takes what is there, unless the last run was taken too short a time ago: then it tells how long to wait.
func (n *notices) take(now time.Time) (run []signal.Message, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sight == nil && n.capacity == nil && len(n.poses) == 0 {
		return nil, 0
	}
	if passed := now.Sub(n.sent); passed < noticeInterval {
		return nil, noticeInterval - passed
	}
	n.sent = now
	if n.capacity != nil {
		run = append(run, n.capacity)
	}
	if n.sight != nil {
		run = append(run, n.sight)
	}
	for _, name := range slices.Sorted(maps.Keys(n.poses)) {
		run = append(run, n.poses[name])
	}
	n.sight, n.capacity = nil, nil
	clear(n.poses)
	return run, 0
}

// flush sends the notices that are there, or sets the timer if it is too early for them.
func (n *notices) flush(l *link, timer *time.Timer) {
	run, wait := n.take(time.Now())
	for _, m := range run {
		l.write(m)
	}
	if wait > 0 {
		timer.Reset(wait)
	}
}
