package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// roomName is the room of all participants.
const roomName = "room"

// body is published by participants: two tiles of 2 kB at 10 frames per second, 320 kbit/s.
var body = testbed.Load{Name: "body", Tiles: 2, Qualities: 1, FrameBytes: 2000, Variation: 0.3, Rate: 10}

// interval is the time between two frames of a load.
func interval(l testbed.Load) time.Duration { return time.Duration(float64(time.Second) / l.Rate) }

// attendee is a participant of the room.
type attendee struct {
	*testbed.Peer
	identity string
	// node is the number of the node at which the participant joined.
	node int
	// loads are those that the participant publishes.
	loads []testbed.Load
	// joined is the time at which the participant began to join.
	joined time.Time
}

// room has participants at the nodes of a cluster.
type room struct {
	nodes *nodes
	all   []*attendee
	// attended counts all participants, also those that have left.
	attended int
}

// attend adds a participant, who receives everything.
func (r *room) attend(ctx context.Context, node int, loads ...testbed.Load) (*attendee, error) {
	return r.attendBy(ctx, node, "", loads...)
}

// attendBy is attend with another address of the node, unless the address is empty.
func (r *room) attendBy(ctx context.Context, node int, address string, loads ...testbed.Load) (*attendee, error) {
	a := &attendee{identity: fmt.Sprintf("p%d", r.attended), node: node, loads: loads, joined: time.Now()}
	var err error
	a.Peer, err = r.nodes.join(ctx, node, testbed.Part{Room: roomName, Identity: a.identity, Loads: loads,
		Receive: true, Record: true, Seed: uint64(r.attended), URL: address})
	if err != nil {
		return nil, err
	}
	r.all, r.attended = append(r.all, a), r.attended+1
	return a, nil
}

// tiles returns the tiles that a participant receives: those of all others.
func (r *room) tiles(of *attendee) (list []volumetric.TileRef) {
	for _, a := range r.all {
		if a != of {
			list = append(list, a.tiles()...)
		}
	}
	return list
}

// tiles returns the tiles that the participant publishes.
func (a *attendee) tiles() (list []volumetric.TileRef) {
	for _, load := range a.loads {
		for tile := range load.Tiles {
			list = append(list, volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: a.identity,
				Publication: load.Name}, Tile: tile})
		}
	}
	return list
}

// awaitFrames waits until every participant has a number of further frames of every tile.
func (r *room) awaitFrames(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := make([]map[volumetric.TileRef]testbed.Reception, len(r.all))
	for i, a := range r.all {
		before[i] = a.Tiles()
	}
	for i, a := range r.all {
		for _, tile := range r.tiles(a) {
			if err := testbed.Await(ctx, fmt.Sprintf("%s has %d more frames of %v", a.identity, count, tile),
				func() bool { return a.Tile(tile).Frames >= before[i][tile].Frames+count }); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle ends all loads, and waits until the last frames have arrived.
func (r *room) settle(ctx context.Context) error {
	for _, a := range r.all {
		a.StopPublishing()
	}
	return lab.Pause(ctx, time.Second)
}

// lost returns the number of frames between the first and the last one of the chosen tiles that receivers have not
// received, and the number that they have.
func (r *room) lost(chosen func(receiver, publisher *attendee) bool) (lost, received int64) {
	for _, receiver := range r.all {
		seen := make(map[volumetric.TileRef]map[int64]bool)
		for _, arrival := range receiver.Arrivals() {
			if seen[arrival.Track.TileRef] == nil {
				seen[arrival.Track.TileRef] = make(map[int64]bool)
			}
			seen[arrival.Track.TileRef][arrival.Number] = true
		}
		for _, publisher := range r.all {
			if publisher == receiver || !chosen(receiver, publisher) {
				continue
			}
			for _, tile := range publisher.tiles() {
				numbers := seen[tile]
				if len(numbers) == 0 {
					continue
				}
				first, last := int64(-1), int64(-1)
				for number := range numbers {
					if first < 0 || number < first {
						first = number
					}
					last = max(last, number)
				}
				received += int64(len(numbers))
				lost += last - first + 1 - int64(len(numbers))
			}
		}
	}
	return lost, received
}

// everyone chooses all pairs.
func everyone(_, _ *attendee) bool { return true }

// failures returns the number of participants that received a wrong frame or whose session has ended.
func (r *room) failures() (count int64) {
	for _, a := range r.all {
		if a.Failure() != nil || a.Session.Err() != nil {
			count++
		}
	}
	return count
}
