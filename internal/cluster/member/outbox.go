package member

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// outboxTime is the time for which a reliable message waits for the trunk to a node: a trunk opens in three round
	// trips, and again at most 2 s after a failure.
	outboxTime = 5 * time.Second
	// outboxMessages and outboxBytes limit the messages that wait for one node: two seconds of the messages that a
	// trunk accepts, with 512 bytes each.
	outboxMessages = 4096
	outboxBytes    = 2 << 20
)

// outbox has the payloads that wait for the trunk to a node: reliable messages in their order, and the latest pose of
// each object.
type outbox struct {
	linked   bool
	reliable []waiting
	bytes    int
	poses    map[poseKey][]byte
}

// waiting is a reliable payload that waits until a time.
type waiting struct {
	payload []byte
	until   time.Time
}

// poseKey identifies an object in all rooms.
type poseKey struct {
	room string
	ref  volumetric.PublicationRef
}

// unlink notes that the trunk has ended. Poses do not wait for the next one.
func (o *outbox) unlink() {
	o.linked = false
	clear(o.poses)
}

// add adds a reliable payload. add reports false if too many wait.
func (o *outbox) add(now time.Time, payload []byte) bool {
	if len(o.reliable) >= outboxMessages || o.bytes+len(payload) > outboxBytes {
		return false
	}
	o.reliable = append(o.reliable, waiting{payload, now.Add(outboxTime)})
	o.bytes += len(payload)
	return true
}

// pose replaces the pose of an object. Without a trunk the pose is lost: its room sends the pose again when the node
// takes the publication.
func (o *outbox) pose(key poseKey, payload []byte) {
	if o.linked {
		o.poses[key] = payload
	}
}

// flush sends what the trunk accepts, and returns the number of reliable messages whose time has passed.
func (o *outbox) flush(now time.Time, send func(payload []byte) bool) (expired int) {
	for o.linked && len(o.reliable) > 0 && send(o.reliable[0].payload) {
		o.removeFirst()
	}
	for len(o.reliable) > 0 && !now.Before(o.reliable[0].until) {
		expired++
		o.removeFirst()
	}
	if len(o.reliable) > 0 {
		return expired
	}
	for key, payload := range o.poses {
		if !send(payload) {
			break
		}
		delete(o.poses, key)
	}
	return expired
}

// removeFirst removes the first reliable payload.
func (o *outbox) removeFirst() {
	o.bytes -= len(o.reliable[0].payload)
	o.reliable = o.reliable[1:]
}

// clear removes everything, and returns the number of reliable messages: the node is dead.
func (o *outbox) clear() int {
	removed := len(o.reliable)
	o.reliable, o.bytes = nil, 0
	clear(o.poses)
	return removed
}

// empty reports whether nothing waits.
func (o *outbox) empty() bool { return len(o.reliable)+len(o.poses) == 0 }
