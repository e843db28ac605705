package interop

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/interop/standin"
)

// TestFaultsThatKill has servers send data that ends the original.
func TestFaultsThatKill(t *testing.T) {
	tests := map[string]struct {
		faults standin.Faults
		want   error
	}{
		"a candidate that is cut off":     {standin.Faults{BadCandidate: true}, oldpeer.ErrCandidate},
		"an offer without mids":           {standin.Faults{BadOffer: true}, oldpeer.ErrDescription},
		"a message without a third part":  {standin.Faults{ShortMessage: true}, oldpeer.ErrMessage},
		"the same, after two good offers": {standin.Faults{ShortMessage: true, SecondOffer: true}, oldpeer.ErrMessage},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, test.faults)
			p := dial(t, oldpeer.Config{Server: s.Address(), Client: 1, Tiles: 1, Qualities: 1})
			select {
			case <-p.Dead():
			case <-time.After(patience):
				t.Fatal("the peer lives on")
			}
			if err := p.Fault(); !errors.Is(err, test.want) {
				t.Errorf("the fault is %v, expected %v", err, test.want)
			}
		})
	}
}

// TestFaultsOfOffers has servers send offers that the original handles wrongly.
func TestFaultsOfOffers(t *testing.T) {
	tests := map[string]struct {
		faults standin.Faults
		want   error
	}{
		"two offers at once":                  {standin.Faults{SecondOffer: true}, oldpeer.ErrSecondOffer},
		"a line that sends before the others": {standin.Faults{SendLinesFirst: true}, oldpeer.ErrLines},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, test.faults)
			// The second offer has to arrive before the answer, also on a machine that stalls.
			p := dial(t, oldpeer.Config{Server: s.Address(), Client: 1, Tiles: 1, Qualities: 1,
				AnswerDelay: 2 * time.Second})
			eventually(t, "the fault shows", func() bool { return errors.Is(p.Fault(), test.want) })
			select {
			case <-p.Dead():
				t.Error("the peer died of it")
			default:
			}
		})
	}
}

// TestFaultsThatSpoil has servers send data that the original survives, with lost or broken media.
func TestFaultsThatSpoil(t *testing.T) {
	// Frames of 40 packets, sent without a pause: most of the time the server is in the middle of a frame.
	p := programme{Client: 1, Tiles: 1, Qualities: 2, Bytes: 25_000, Interval: 5 * time.Millisecond}
	tests := map[string]struct {
		faults standin.Faults
		want   error
	}{
		"RTP without extension":            {standin.Faults{NoExtension: true}, oldpeer.ErrHeader},
		"padding":                          {standin.Faults{Padding: true}, oldpeer.ErrPadding},
		"duplicates":                       {standin.Faults{Duplicates: true}, oldpeer.ErrDuplicate},
		"switches in the middle of frames": {standin.Faults{MidFrame: true}, oldpeer.ErrMixed},
		"frame numbers as they are":        {standin.Faults{KeepNumbers: true}, oldpeer.ErrBackwards},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, test.faults)
			publisher := connect(t, oldpeer.Config{Server: s.Address(), Client: 1, Tiles: p.Tiles,
				Qualities: p.Qualities})
			p.publish(t, publisher)
			receiver := connect(t, oldpeer.Config{Server: s.Address(), Client: 2, Tiles: 1, Qualities: 1})
			quality := 0
			eventually(t, "the fault shows", func() bool {
				receiver.Choose(oldpeer.Decision{Client: 1, Qualities: []int{quality}})
				quality = 1 - quality
				return errors.Is(receiver.Fault(), test.want)
			})
		})
	}
}

// TestCandidatesBeforeTheOffer has the stand-in send candidates when the original often does. They are lost, but the
// peer connects, because the server reaches it by the peer's candidates.
func TestCandidatesBeforeTheOffer(t *testing.T) {
	s := startStandIn(t, standin.Faults{CandidatesFirst: true})
	p := connect(t, oldpeer.Config{Server: s.Address(), Client: 1, Tiles: 2, Qualities: 2})
	if counts := p.Counts(); counts.LostCandidates == 0 || counts.LostCandidates != counts.Candidates {
		t.Errorf("%+v", counts)
	}
	if err := p.Fault(); err != nil {
		t.Error(err)
	}
}

// TestQualityMessages sends the original's messages, including their faults, to servers that read them as the original
// does, and to those that read them as intended.
func TestQualityMessages(t *testing.T) {
	tests := map[string]struct {
		faults   standin.Faults
		unpadded bool
		client   int
		want     []int
	}{
		"the original loses the last tile":   {standin.Faults{StrictNumbers: true}, false, 1, []int{1, 1, 0}},
		"it would not without NULs":          {standin.Faults{StrictNumbers: true}, true, 1, []int{1, 1, 1}},
		"client 0 is nobody":                 {standin.Faults{StrictNumbers: true}, true, 0, []int{0, 0, 0}},
		"NULs are stripped":                  {standin.Faults{}, false, 1, []int{1, 1, 1}},
		"client 0 is all with as many tiles": {standin.Faults{}, false, 0, []int{1, 1, 1}},
	}
	p := programme{Client: 1, Tiles: 3, Qualities: 2, Bytes: 1500, Interval: 10 * time.Millisecond}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, test.faults)
			old(t, s.Address(), p)
			receiver := attend(t, connect(t, oldpeer.Config{Server: s.Address(), Client: 2, Tiles: 1, Qualities: 1,
				Unpadded: test.unpadded}))
			goOn(t, receiver.flows(1, p.Tiles)...)
			receiver.peer.Choose(oldpeer.Decision{Client: test.client, Qualities: []int{1, 1, 1}})
			eventually(t, "the choice shows", func() bool { return receiver.sees(1, test.want) })
			// A message that was not understood has no later effect.
			goOn(t, receiver.flows(1, p.Tiles)...)
			if !receiver.sees(1, test.want) {
				t.Error("qualities change once more")
			}
			receiver.whole(t, 0)
		})
	}
}

// TestAddressFilter has a shipped peer on a machine that has none of the addresses that it accepts: it finds no
// candidates, and never connects.
func TestAddressFilter(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if strings.HasPrefix(a.String(), oldpeer.OriginalAddresses) {
			t.Skipf("this machine has an address that the shipped peer takes: %v", a)
		}
	}
	s := startStandIn(t, standin.Faults{})
	p := dial(t, oldpeer.Config{Server: s.Address(), Client: 1, Tiles: 1, Qualities: 1,
		Addresses: oldpeer.OriginalAddresses})
	select {
	case <-p.Gathered():
	case <-time.After(patience):
		t.Fatal("the peer looks for addresses without end")
	}
	eventually(t, "the offer is answered", func() bool { return p.Counts().Answers == 1 })
	if counts := p.Counts(); counts.Gathered != 0 {
		t.Errorf("%+v", counts)
	}
	select {
	case <-p.Connected():
		t.Error("the peer is connected")
	default:
	}
}

// TestLeavingTheStandIn ends old peers in every way while others continue.
func TestLeavingTheStandIn(t *testing.T) {
	s := startStandIn(t, standin.Faults{})
	p := programme{Tiles: 2, Qualities: 2, Bytes: 1500, Interval: 10 * time.Millisecond}
	people := map[int]*audience{}
	for client := 1; client <= 4; client++ {
		p.Client = client
		people[client] = old(t, s.Address(), p)
	}
	for client := 2; client <= 4; client++ {
		goOn(t, people[1].flows(client, p.Tiles)...)
	}
	people[2].peer.Kill()
	people[3].peer.Leave()
	goOn(t, people[1].flows(4, p.Tiles)...)
	goOn(t, people[4].flows(1, p.Tiles)...)
	people[1].whole(t, 0)
	people[4].whole(t, 0)
	select {
	case <-people[1].peer.Dead():
		t.Error("a peer died with another one")
	default:
	}
}
