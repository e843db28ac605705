package peer

import (
	"fmt"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// A client that cannot receive frames over media lines receives them over data channels. The slots are channels, and
// the labels of the channels stand for mids. All channels share one line, so new channels need no offer.

const (
	// paddingLabel is the label of the channel for messages that the client discards.
	paddingLabel = "padding"
	// channelLabel is the prefix of the labels of slots. No mid of a line has the prefix, because mids are numbers.
	channelLabel = "slot-"
)

// addChannels creates the wanted channels for slots and reports new channels to the owner.
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
