package peer

import (
	"fmt"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// A client that cannot take frames off media lines takes them over data channels: its slots are channels, whose labels
// stand for mids. They need no offers beyond the one for the line that carries them all.

const (
	// paddingLabel is the label of the channel whose messages mean nothing.
	paddingLabel = "padding"
	// channelLabel begins the labels of slots, which no mid of a line is like: those are numbers.
	channelLabel = "slot-"
)

// addChannels brings the channels for slots to what is wanted, and tells the owner of new ones.
func (c *Connection) addChannels() {
	var made []subscriber.Line
	for ; c.channels < c.wanted.Slots; c.channels++ {
		label := fmt.Sprint(channelLabel, c.channels)
		made = append(made, subscriber.Line{
			MID: label, Kind: volumetric.KindVideo, Outlet: c.chunks.NewOutlet(c.peer.AddChannel(label)),
		})
	}
	if len(made) > 0 {
		c.owner.ChannelsMade(made)
	}
}
