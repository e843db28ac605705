package bridge

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const password = "0123456789abcdef"

// presentation returns the datagram that presents a secret, padded.
func presentation(secret string) []byte {
	datagram := make([]byte, vr2gather.DatagramSize)
	binary.LittleEndian.PutUint32(datagram, datagramSecret)
	binary.LittleEndian.PutUint32(datagram[4:], uint32(len(secret)))
	copy(datagram[8:], secret)
	return datagram
}

func requiring(t *testing.T) (*Inlet, *Tally) {
	t.Helper()
	secret, err := NewSecret(password)
	if err != nil {
		t.Fatal(err)
	}
	tally := &Tally{}
	i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, true, tally)
	i.Handshake.Require(secret)
	return i, tally
}

func TestSecretLengths(t *testing.T) {
	for length, good := range map[int]bool{0: false, MinSecret - 1: false, MinSecret: true, MaxSecret: true,
		MaxSecret + 1: false} {
		if _, err := NewSecret(strings.Repeat("s", length)); (err == nil) != good || err != nil &&
			!errors.Is(err, ErrSecret) {
			t.Errorf("a secret of %d bytes gives %v, expected it to be taken: %v", length, err, good)
		}
	}
}

func TestConnectorPresentsTheSecret(t *testing.T) {
	i, tally := requiring(t)
	frame := datagrams(t, vr2gather.Packet{Kind: volumetric.KindVideo}, someFrame(500, 1))[0]
	ready := make([]byte, vr2gather.DatagramSize)
	for _, datagram := range [][]byte{frame, ready, presentation("0123456789abcdeX"), presentation(password + "0"),
		presentation(password[:15]), presentation("")} {
		i.Receive(other, datagram, start)
	}
	if peer, ok := i.Handshake.Peer(); ok {
		t.Fatalf("%v is the connector without the secret", peer)
	}
	expectDropped(t, tally, map[Drop]int64{DropSource: 2, DropSecret: 4})
	i.Receive(other, presentation(password), start)
	if peer, ok := i.Handshake.Peer(); !ok || peer != other {
		t.Fatalf("the connector is at %v, %v, expected %v", peer, ok, other)
	}
	if a := i.Receive(other, frame, start); a.Frame == nil {
		t.Error("a frame of the connector is not taken")
	}
	// A second sender with the secret does not replace a connector that is not silent.
	i.Receive(another, presentation(password), start.Add(time.Second))
	if peer, _ := i.Handshake.Peer(); peer != other {
		t.Errorf("the connector is at %v, expected %v", peer, other)
	}
}

func TestSecretIsPresentedAgainAfterASilence(t *testing.T) {
	i, _ := requiring(t)
	i.Receive(other, presentation(password), start)
	later := start.Add(silenceTimeout)
	i.Receive(other, make([]byte, vr2gather.DatagramSize), later)
	if _, ok := i.Handshake.Receiver(later); ok {
		t.Error("a silent connector is sent media again without the secret")
	}
	i.Receive(another, presentation(password), later)
	if to, ok := i.Handshake.Receiver(later); !ok || to != another {
		t.Errorf("media is sent to %v, %v, expected %v", to, ok, another)
	}
}

func TestSecretIsTakenByABridgeWithoutOne(t *testing.T) {
	tally := &Tally{}
	i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, true, tally)
	i.Receive(other, presentation(password), start)
	if peer, ok := i.Handshake.Peer(); !ok || peer != other {
		t.Errorf("the connector is at %v, %v, expected %v", peer, ok, other)
	}
	expectDropped(t, tally, nil)
}

// FuzzSecret presents arbitrary data: only the secret makes its sender the connector.
func FuzzSecret(f *testing.F) {
	f.Add(presentation(password))
	f.Add(presentation(password)[:8+len(password)])
	f.Add(presentation(password)[:8+len(password)-1])
	f.Add(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, datagramSecret), 1<<32-1))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		secret, err := NewSecret(password)
		if err != nil {
			t.Fatal(err)
		}
		i := NewInlet(home, Layout{Tiles: 2, Qualities: 1}, true, &Tally{})
		i.Handshake.Require(secret)
		i.Receive(other, datagram, start)
		_, known := i.Handshake.Peer()
		want := string(presentation(password)[:8+len(password)])
		if right := strings.HasPrefix(string(datagram), want); known != right {
			t.Errorf("% x makes its sender the connector: %v, expected %v", datagram, known, right)
		}
	})
}
