package transport

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// newLone makes a peer whose remote peer does not exist. The peer is closed at the end of the test.
func newLone(t testing.TB, config Config) *Peer {
	t.Helper()
	endpoint, err := Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := endpoint.NewPeer(newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = peer.Close()
		_ = endpoint.Close()
	})
	return peer
}

// loopbackConfig returns the configuration of an endpoint without ICE-TCP on a port that the system chooses.
func loopbackConfig() Config {
	c := ClientConfig()
	c.Address = "127.0.0.1"
	return c
}

// offerLines makes an offer with a receiving and a sending line of each kind. The lines have the mids 0 to 3.
func offerLines(t testing.TB, p *Peer) string {
	t.Helper()
	for _, kind := range []volumetric.Kind{volumetric.KindVideo, volumetric.KindAudio} {
		if _, err := p.AddReceiving(kind); err != nil {
			t.Fatal(err)
		}
		if _, err := p.AddSending(kind, fmt.Sprintf("slot-%s", kind)); err != nil {
			t.Fatal(err)
		}
	}
	offer, err := p.Offer(false)
	if err != nil {
		t.Fatal(err)
	}
	return offer
}

// answerTo returns the right answer to an offer of offerLines. The answering peer is closed when answerTo returns.
func answerTo(t testing.TB, offer string) string {
	t.Helper()
	endpoint, err := Listen(loopbackConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	p, err := endpoint.NewPeer(newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Offered(offer); err != nil {
		t.Fatal(err)
	}
	for _, mid := range []string{"0", "2"} {
		if _, err := p.Sending(mid); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := p.Answer()
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// without removes the lines of a description that begin with the prefix.
func without(description, prefix string) string {
	lines := strings.Split(description, "\r\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) }), "\r\n")
}

// sections splits a description into the session's part and one part for each media line.
func sections(description string) []string {
	parts := strings.Split(description, "\r\nm=")
	for i := range parts {
		if i > 0 {
			parts[i] = "m=" + parts[i]
		}
		parts[i] = strings.TrimSuffix(parts[i], "\r\n") + "\r\n"
	}
	return parts
}
