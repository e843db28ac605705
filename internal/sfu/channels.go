package sfu

import (
	"fmt"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// A client that cannot take frames off media lines takes them over data channels: its slots are channels, whose labels stand for mids. They need no offers beyond the one for the line
// that carries them all.

const (
	// paddingLabel is the label of the channel whose messages mean nothing.
	paddingLabel = "padding"
	// channelLabel begins the labels of slots, which no mid of a line is like: those are numbers.
	channelLabel = "slot-"
)

// addChannels brings the channels for slots to what is wanted, and tells the room of new ones.
func (c *connection) addChannels() {
	var made []subscriber.Line
	for ; c.channels < c.wanted.slots; c.channels++ {
		label := fmt.Sprint(channelLabel, c.channels)
		made = append(made, subscriber.Line{
			MID: label, Kind: volumetric.KindVideo, Outlet: c.chunks.NewOutlet(c.peer.AddChannel(label)),
		})
	}
	if len(made) > 0 {
		c.room.post(channelsMade{c, made})
	}
}

// channelsMade brings channels for new slots.
type channelsMade struct {
	*connection
	slots []subscriber.Line
}

// apply implements request.
func (q channelsMade) apply(r *Room) {
	if !q.present() {
		return
	}
	p := q.owner
	p.subscriber.Slots.Add(q.slots)
	p.openSlots()
	p.tellAssignments(p.subscriber.Slots.Assign())
	p.refresh(r.now)
}
