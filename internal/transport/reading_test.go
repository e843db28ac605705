package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// brokenConn is a packet connection that cannot be read.
type brokenConn struct{ net.PacketConn }

var errBroken = errors.New("the device is gone")

func (brokenConn) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, errBroken }

// TestABrokenSocketIsTold: a socket that cannot be read any more is reported, a closed one is not.
func TestABrokenSocketIsTold(t *testing.T) {
	for _, broken := range []bool{true, false} {
		t.Run(fmt.Sprintf("broken %t", broken), func(t *testing.T) {
			conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if broken {
				conn = brokenConn{conn}
			}
			endpoint, err := Attach(loopbackConfig(), conn)
			if err != nil {
				t.Fatal(err)
			}
			if broken {
				select {
				case err := <-endpoint.Failed():
					if !errors.Is(err, errBroken) {
						t.Errorf("got %v, want errBroken", err)
					}
				case <-time.After(wait.Patience):
					t.Error("nobody was told")
				}
			}
			if err := endpoint.Close(); err != nil {
				t.Error(err)
			}
			if err, open := <-endpoint.Failed(); open {
				t.Errorf("closing failed with %v", err)
			}
		})
	}
}

// hearer records the calls that it receives, with its name.
type hearer struct {
	*recorder
	name string
	told *[]string
}

func (b hearer) Signal() { *b.told = append(*b.told, "signal "+b.name) }
func (b hearer) Flush()  { *b.told = append(*b.told, "flush "+b.name) }

// TestBatchesOfSeveralPeers: Signal of all peers with packets in a batch is called before Flush of the first.
func TestBatchesOfSeveralPeers(t *testing.T) {
	for peers, expected := range map[int][]string{
		1: {"flush a"},
		3: {"signal a", "signal b", "signal c", "flush a", "flush b", "flush c"},
	} {
		var told []string
		var touched []*Peer
		for _, name := range []string{"a", "b", "c"}[:peers] {
			sink := hearer{newRecorder(), name, &told}
			touched = append(touched, &Peer{sink: sink})
		}
		flush(touched)
		if !slices.Equal(told, expected) {
			t.Errorf("%d peers were told %q, expected %q", peers, told, expected)
		}
	}
}

// deaf is a sink that blocks until the test releases it.
type deaf struct {
	*recorder
	hears chan struct{}
}

func (d *deaf) RTP(uint32, []byte, *PacketInfo) { <-d.hears }

// TestNobodyWaitsForAReceiverOverTCP sends to a peer that does not read. Packets above the queue's limit are lost, and
// sending continues.
func TestNobodyWaitsForAReceiverOverTCP(t *testing.T) {
	p := newPair(t)
	endpoint, err := Dial(ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	sink := &deaf{newRecorder(), make(chan struct{})}
	peer, err := endpoint.NewPeer(sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.answers.Close(), p.endpoints[1].Close()); err != nil {
		t.Fatal(err)
	}
	p.answers, p.endpoints[1] = peer, endpoint
	slot, err := p.offers.AddSending(volumetric.KindVideo, "slot")
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate(nil)
	p.connect()
	media, _, _ := slot.Outlet.PayloadType(volumetric.MIMEVolumetric)
	header := rtp.Header{Version: 2, PayloadType: media, SSRC: slot.Outlet.SSRC()}
	sent := make(chan error, 1)
	go func() {
		defer close(sent)
		// 24 MB are more than all buffers on the path hold.
		for range 20_000 {
			header.SequenceNumber++
			if err := slot.Outlet.WriteRTP(&header, make([]byte, 1200)); err != nil {
				sent <- err
				return
			}
		}
	}()
	select {
	case err := <-sent:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(wait.Patience):
		t.Error("sending waits for a receiver that does not read")
	}
	close(sink.hears)
}

// TestClosedEndpointsAreClosedOnce closes twice.
func TestClosedEndpointsAreClosedOnce(t *testing.T) {
	endpoint, err := Listen(loopbackConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := endpoint.Close(); err != nil {
		t.Fatal(err)
	}
	if err := endpoint.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestPortsOfMediaAreExcepted returns the ports of the peers of one source.
func TestPortsOfMediaAreExcepted(t *testing.T) {
	var r routes
	for _, text := range []string{"203.0.113.1:5", "203.0.113.2:6", "[2001:db8::1]:7", "[2001:db8::2]:8",
		"[2001:db8:0:1::1]:9"} {
		r.add(&Peer{}, netip.MustParseAddrPort(text))
	}
	for prefix, want := range map[string]int{"203.0.113.1/32": 1, "2001:db8::/64": 2, "192.0.2.1/32": 0} {
		if ports := r.Ports(netip.MustParsePrefix(prefix)); len(ports) != want {
			t.Errorf("media goes to ports %v of %s, expected %d", ports, prefix, want)
		}
	}
}
