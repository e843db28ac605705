package client

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// framesOn returns the numbers of the frames on a wire, in their order, without repetition.
func framesOn(t *testing.T, w *wire) (numbers []uint32) {
	t.Helper()
	for _, packet := range w.sent {
		var d payload.Descriptor
		if _, err := d.Unmarshal(packet.Payload); err != nil {
			t.Fatal(err)
		}
		if len(numbers) == 0 || numbers[len(numbers)-1] != d.Frame {
			numbers = append(numbers, d.Frame)
		}
	}
	return numbers
}

// moving is a publication whose session moves to another server.
type moving struct {
	t             *testing.T
	before, after *rig
	publisher     *Publisher
	// old and fresh are the lines of both connections, by track.
	old, fresh []*wire
	capture    time.Time
}

func newMoving(t *testing.T) *moving {
	m := newRig(t, Config{QueueBudget: time.Minute})
	p, wires := published(t, m, described("body", volumetric.MIMEVolumetric, 2, 1))
	v := &moving{t: t, before: m, publisher: p, old: wires, capture: time.Now()}
	v.after = m.after()
	p.follow(v.after.media)
	m.session.path.present.Store(v.after.media)
	return v
}

// negotiate attaches a line of the second connection.
func (v *moving) negotiate(tile int) {
	w := newOutlet(volumetric.MIMEVolumetric, uint32(500+10*tile), 0)
	v.fresh = append(v.fresh, w)
	v.publisher.attach(v.after.media, fmt.Sprint(tile), w, tile, 0)
}

// write writes a tile of a frame.
func (v *moving) write(number uint32, tile int) {
	v.t.Helper()
	frame := OutgoingFrame{
		Number: number, Capture: v.capture.Add(time.Duration(number) * time.Second / 30), Data: make([]byte, 100),
	}
	if taken, err := v.publisher.WriteFrame(tile, 0, frame); !taken || err != nil {
		v.t.Fatalf("frame %d of tile %d: taken %v, %v", number, tile, taken, err)
	}
	for _, m := range []*rig{v.before, v.after} {
		flush(m, time.Now().Add(time.Second))
	}
}

func (v *moving) expect(name string, wires []*wire, want ...uint32) {
	v.t.Helper()
	for tile, w := range wires {
		if got := framesOn(v.t, w); !slices.Equal(got, want) {
			v.t.Errorf("%s connection, tile %d: frames %d, expected %d", name, tile, got, want)
		}
	}
}

// TestFramesMoveAtABoundary: all tiles of a frame take the same connection, and no frame takes both.
func TestFramesMoveAtABoundary(t *testing.T) {
	t.Parallel()
	v := newMoving(t)
	v.write(1, 0)
	v.write(1, 1)
	v.after.connect()
	v.negotiate(0)
	v.write(2, 0) // The other tile has no line yet.
	v.negotiate(1)
	v.write(2, 1)
	now := v.publisher.written
	if !v.publisher.moves(now) || v.publisher.moves(now.Add(2*time.Second)) {
		t.Error("the former connection is needed for as long as frames come")
	}
	v.write(3, 0)
	v.write(3, 1)
	v.write(4, 0)
	v.write(4, 1)
	v.expect("former", v.old, 1, 2)
	v.expect("present", v.fresh, 3, 4)
	if v.publisher.moves(time.Now()) {
		t.Error("the former connection is still needed")
	}
	first := v.old[0].sent[0].Timestamp
	for i, w := range []*wire{v.old[0], v.old[0], v.fresh[0], v.fresh[0]} {
		if got := w.sent[i%2].Timestamp - first; got != uint32(i)*3000 {
			t.Errorf("frame %d has the timestamp %d after the first, expected %d", i+1, got, i*3000)
		}
	}
}

// TestALateTileTakesTheFormerConnection: tiles of different threads need no order.
func TestALateTileTakesTheFormerConnection(t *testing.T) {
	t.Parallel()
	v := newMoving(t)
	v.write(7, 0)
	v.after.connect()
	v.negotiate(0)
	v.negotiate(1)
	v.write(8, 0)
	v.write(7, 1)
	v.write(8, 1)
	v.expect("former", v.old, 7)
	v.expect("present", v.fresh, 8)
}

// TestFramesGoOnIfTheFormerServerIsGone before the second connection has all lines.
func TestFramesGoOnIfTheFormerServerIsGone(t *testing.T) {
	t.Parallel()
	v := newMoving(t)
	v.write(1, 0)
	v.after.connect()
	v.negotiate(0)
	v.before.disconnect()
	v.write(2, 0)
	v.expect("present", v.fresh, 2)
	v.publisher.leave()
	v.write(3, 0)
	v.expect("present", v.fresh, 2, 3)
}

// TestWantsOfBothServers: each connection sends what its server wants.
func TestWantsOfBothServers(t *testing.T) {
	t.Parallel()
	v := newMoving(t)
	want := func(m *rig, tiles ...[]volumetric.Quality) {
		v.publisher.want(m.media, wantedTiles("body", tiles))
	}
	want(v.before, []volumetric.Quality{0}, nil)
	want(v.after, nil, []volumetric.Quality{0})
	if !v.publisher.Wanted(0, 0) || v.publisher.Wanted(1, 0) {
		t.Error("before the move the present server decides")
	}
	v.write(1, 0)
	v.after.connect()
	v.negotiate(0)
	v.negotiate(1)
	v.write(2, 1)
	if v.publisher.Wanted(0, 0) || !v.publisher.Wanted(1, 0) {
		t.Error("after the move the new server decides")
	}
	var events []Wanted
	for len(v.before.session.events) > 0 {
		if e, ok := (<-v.before.session.events).(Wanted); ok {
			events = append(events, e)
		}
	}
	if len(events) != 2 || len(events[0].Tiles[0]) != 1 || len(events[1].Tiles[1]) != 1 {
		t.Errorf("events %+v, expected the wants of each server when its connection carries the frames", events)
	}
}

// TestTheFormerConnectionStaysUntilAllTracksAreNegotiated: on a slow link that lasts longer than the wait for tiles.
func TestTheFormerConnectionStaysUntilAllTracksAreNegotiated(t *testing.T) {
	t.Parallel()
	v := newMoving(t)
	s, now := v.before.session, time.Now()
	s.publishers.add(v.publisher)
	c := &control{parts: s.parts, former: &former{
		link: link{media: v.before.media}, connected: now.Add(-2 * overlap), deadline: now.Add(time.Hour),
	}}
	v.write(1, 0)
	v.after.connect()
	v.negotiate(0)
	c.checkFormer(time.Now())
	if c.former == nil || !c.former.idleSince.IsZero() {
		t.Fatal("the client leaves the connection that carries its frames")
	}
	v.negotiate(1)
	v.write(2, 0)
	c.checkFormer(time.Now())
	if c.former.idleSince.IsZero() {
		t.Error("the client keeps a connection that it does not need")
	}
}

// TestAPublicationDuringAMove: the publisher was made before the move, and is known after it.
func TestAPublicationDuringAMove(t *testing.T) {
	t.Parallel()
	v := newMoving(t)
	late := &Publisher{all: v.publisher.all, description: v.publisher.description, present: v.publisher.present}
	late.follow(late.all.path.media())
	if late.next == nil || late.next.media != v.after.media {
		t.Error("the publisher does not follow the session")
	}
	late.present, late.next = late.next, nil
	if late.follow(late.all.path.media()); late.next != nil {
		t.Error("the publisher follows to the present server")
	}
}
