package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// begin is the time of the messages whose length is measured.
var begin = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// state returns the messages between nodes. span is the mean number of nodes of a room.
func (p *Plan) state(span float64) (StateResult, error) {
	nodes := float64(p.Nodes)
	people := float64(p.Rooms * (p.Participants + p.Viewers))
	// Each stay is a join and a leave.
	changes := 2 * people / p.Stay.Seconds() / nodes
	m, err := p.measure(int(min(changes, max(1, float64(p.Rooms)*span/nodes), 500)))
	if err != nil {
		return StateResult{}, err
	}
	s := StateResult{BeatBytes: m.beat, JoinBytes: m.join, SnapshotBytes: m.snapshot}
	s.Beats = beatRate * (nodes - 1)
	s.Changes = changes * (span - 1)
	s.Rate = 8 * (s.Beats*float64(m.beat) + s.Changes*float64(m.join+m.leave)/2)
	s.Poses = p.Poses * float64(p.Rooms*p.Participants) * (span - 1) / nodes
	return s, nil
}

// lengths are the lengths of messages in bytes.
type lengths struct{ beat, join, leave, snapshot int }

// measure encodes the messages of a node with a number of rooms that have changed in the last second.
func (p *Plan) measure(changed int) (lengths, error) {
	r := cluster.New(cluster.Config{}, cluster.Self{Name: "node-1", Incarnation: uint64(begin.UnixMicro()),
		Description: cluster.Description{
			Region: "eu-west", URL: "wss://node-1.sfu.example.com:8080", Proxy: "node-1.sfu.example.com:7883",
			Trunk: "192.0.2.10:7883",
		}}, begin)
	r.SetStatus(begin, cluster.Status{Load: 0.4375, JoinLoad: 0.0021, Rooms: 100, Participants: 1000})
	var m lengths
	var err error
	for i := range max(changed, 1) {
		room := fmt.Sprintf("meeting-%d", i)
		if err = r.Enter(begin, room); err != nil {
			return m, err
		}
		if _, err = sent(r, begin); err != nil {
			return m, err
		}
		if err = join(r, room, "user-1", p.publication()); err != nil {
			return m, err
		}
		if m.join, err = sent(r, begin); err != nil {
			return m, err
		}
	}
	// A node that enters a room receives the changes that create its participants, as one message.
	m.snapshot = m.join * max(p.Participants, 1)
	r.Leave(begin, "meeting-0", "user-1", session)
	if m.leave, err = sent(r, begin); err != nil {
		return m, err
	}
	at := begin.Add(500 * time.Millisecond)
	if changed == 0 {
		at = begin.Add(2 * time.Second)
	}
	r.Step(at)
	m.beat, err = sent(r, at)
	return m, err
}

// session is that of the measured participants: 26 characters, as rand.Text has.
const session = "RZ4LX6TQM2HVKD7NPCWBY3JGEA"

func join(r *cluster.Replica, room, identity string, p cluster.Publication) error {
	participant := cluster.Participant{Identity: identity, Session: session, Joined: begin, Live: true,
		Permissions: signal.Permissions{Publish: true, Subscribe: true, Data: true}}
	if err := r.Join(begin, room, participant); err != nil {
		return err
	}
	return r.Publish(begin, room, identity, p)
}

// publication returns an object with the tiles and qualities of the plan.
func (p *Plan) publication() cluster.Publication {
	d := volumetric.Publication{Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: "video/volumetric", ClockRate: 90000}}
	for range p.Tiles {
		d.Tiles = append(d.Tiles, volumetric.Tile{Label: "part", Box: volumetric.BoundingBox{
			Min: [3]float32{-0.25, 0, -0.25}, Max: [3]float32{0.25, 1.75, 0.25}}})
	}
	for i, q := range p.Qualities {
		d.Qualities = append(d.Qualities, volumetric.QualityLevel{Name: strings.Repeat("q", i+1),
			Bitrate: volumetric.Bitrate(q.Rate)})
	}
	return cluster.Publication{ID: 1, Description: d}
}

// sent returns the length of all messages that wait, in bytes.
func sent(r *cluster.Replica, now time.Time) (int, error) {
	total := 0
	for _, out := range r.Messages(now) {
		data, err := out.Message.Encode()
		if err != nil {
			return 0, err
		}
		total += len(data)
	}
	return total, nil
}
