package cluster

import (
	"context"
	"net"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
)

// observer is a participant that receives everything and counts the server's messages. It neither moves nor resumes.
type observer struct{ *puppet.Puppet }

// observe adds an observer at a node.
func (n *nodes) observe(ctx context.Context, number int) (o observer, err error) {
	media, err := net.ListenUDP("udp4", &net.UDPAddr{IP: forClients.own().AsSlice()})
	if err != nil {
		return o, err
	}
	if o.Puppet, err = puppet.Dial(puppet.Config{URL: n.all[number].URL(), Token: n.token,
		Media: media}); err != nil {
		return o, err
	}
	if _, err := o.Join(&signal.Join{Version: 1, Room: roomName, Identity: "observer " + n.all[number].name,
		Receive: true}); err != nil {
		o.Close()
		return o, err
	}
	return o, testbed.Await(ctx, "the observer is connected", o.Connected)
}

// notices returns the numbers of offers and of the messages participant_left so far.
func (o observer) notices() (offers, left int) {
	return o.Count(signal.TypeOffer), o.Count(signal.TypeParticipantLeft)
}
