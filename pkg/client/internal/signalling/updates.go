package signalling

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// UpdateInterval is the least time between two batches of updates. Servers accept 60 viewpoints per second.
const UpdateInterval = time.Second / 60

// Updates are messages to the server of which only the newest of a kind counts, and that need no reply: viewpoints,
// poses and the state of the uplink. Any goroutine sets updates without waiting. One goroutine sends them.
type Updates struct {
	// wake is signalled when an update is set.
	wake chan struct{}

	mu        sync.Mutex
	viewpoint *signal.Viewpoint
	poses     map[string]*signal.Pose
	uplink    *signal.Uplink
	// lastViewpoint and lastPoses are the last ones that were set.
	lastViewpoint *signal.Viewpoint
	lastPoses     map[string]*signal.Pose
	// sent is the time of the last batch.
	sent time.Time
}

// NewUpdates returns an empty set of updates.
func NewUpdates() *Updates {
	return &Updates{
		wake: make(chan struct{}, 1), poses: make(map[string]*signal.Pose), lastPoses: make(map[string]*signal.Pose),
	}
}

// Wake returns a channel that is signalled when updates are to be sent.
func (u *Updates) Wake() <-chan struct{} { return u.wake }

// SetViewpoint replaces the viewpoint.
func (u *Updates) SetViewpoint(m *signal.Viewpoint) {
	u.set(func() { u.viewpoint, u.lastViewpoint = m, m })
}

// SetPose replaces the pose of a publication.
func (u *Updates) SetPose(m *signal.Pose) {
	u.set(func() { u.poses[m.Publication], u.lastPoses[m.Publication] = m, m })
}

// Repeat sets the last viewpoint and the last poses of the publications again, for a server that has lost them. Poses
// of other publications are forgotten.
func (u *Updates) Repeat(publications []string) {
	u.set(func() {
		u.viewpoint = u.lastViewpoint
		maps.DeleteFunc(u.lastPoses, func(name string, _ *signal.Pose) bool {
			return !slices.Contains(publications, name)
		})
		maps.Copy(u.poses, u.lastPoses)
	})
}

// Forget removes the pose of a publication that has ended.
func (u *Updates) Forget(publication string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.poses, publication)
	delete(u.lastPoses, publication)
}

// SetUplink replaces the state of the uplink.
func (u *Updates) SetUplink(m *signal.Uplink) { u.set(func() { u.uplink = m }) }

func (u *Updates) set(change func()) {
	u.mu.Lock()
	change()
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// Take removes and returns the updates. If the last batch was less than UpdateInterval ago, it returns the time to wait
// instead.
func (u *Updates) Take(now time.Time) (batch []signal.Message, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.viewpoint == nil && u.uplink == nil && len(u.poses) == 0 {
		return nil, 0
	}
	if passed := now.Sub(u.sent); passed < UpdateInterval {
		return nil, UpdateInterval - passed
	}
	u.sent = now
	if u.uplink != nil {
		batch = append(batch, u.uplink)
	}
	if u.viewpoint != nil {
		batch = append(batch, u.viewpoint)
	}
	for _, name := range slices.Sorted(maps.Keys(u.poses)) {
		batch = append(batch, u.poses[name])
	}
	u.viewpoint, u.uplink = nil, nil
	clear(u.poses)
	return batch, 0
}

// Send sends the updates, or sets the timer if it is too early.
func (u *Updates) Send(conn *Conn, timer *time.Timer) {
	batch, wait := u.Take(time.Now())
	for _, m := range batch {
		conn.Write(m)
	}
	if wait > 0 {
		timer.Reset(wait)
	}
}
