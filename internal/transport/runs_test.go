package transport

import (
	"fmt"
	"net"
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// connectedPair returns a pair with a line toward the answerer. The endpoints have the settings.
func connectedPair(t testing.TB, set func(*Config)) (*pair, *Outlet) {
	t.Helper()
	p := newPairWith(t, set)
	slot, err := p.offers.AddSending(volumetric.KindVideo, "slot")
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate(nil)
	p.connect()
	return p, slot.Outlet
}

// TestQueuedPacketsLeaveInRuns sends frames of many packets of equal length and a short one, over every kind of input
// and output.
func TestQueuedPacketsLeaveInRuns(t *testing.T) {
	const frames, fragments = 20, 43
	for _, test := range []struct {
		name string
		set  func(*Config)
	}{
		{"as by default", func(*Config) {}},
		{"one socket", func(c *Config) { c.Sockets = 1 }},
		{"four sockets", func(c *Config) { c.Sockets = 4 }},
		{"without segmentation", func(c *Config) { c.Segmentation = false }},
		{"without coalescing", func(c *Config) { c.Coalescing = false }},
		{"plain", func(c *Config) { c.Segmentation, c.Coalescing = false, false }},
		{"IPv6", func(c *Config) { c.Address = "::1" }},
		{"both families", func(c *Config) {
			// The server has both families, the client IPv4.
			if c.TCP {
				c.Address = "::"
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := DefaultConfig()
			config.Address = ""
			if test.set(&config); config.Address != "" && !hasIPv6() {
				t.Skip("this system has no IPv6")
			}
			p, outlet := connectedPair(t, test.set)
			media, _, _ := outlet.PayloadType(volumetric.MIMEVolumetric)
			header := rtp.Header{Version: 2, PayloadType: media, SSRC: outlet.SSRC()}
			payload := make([]byte, 1160)
			before := p.endpoints[0].Stats()
			for frame := range frames {
				for fragment := range fragments {
					size := len(payload)
					if fragment == fragments-1 {
						size = 100
					}
					header.SequenceNumber++
					if err := outlet.Queue(&header, payload[:size]); err != nil {
						t.Fatal(err)
					}
				}
				p.offers.Flush()
				// A receive buffer of the system's size holds a frame, and not all of them.
				p.until("the packets of a frame", func() bool {
					return len(p.heard.packets(outlet.SSRC())) == (frame+1)*fragments
				})
			}
			for i, packet := range p.heard.packets(outlet.SSRC()) {
				if want := uint16(i + 1); packet.SequenceNumber != want {
					t.Fatalf("packet %d has number %d, expected %d", i, packet.SequenceNumber, want)
				}
			}
			after := p.endpoints[0].Stats()
			sent, runs := after.Sent-before.Sent, after.Runs-before.Runs
			t.Logf("%d datagrams in %d runs", sent, runs)
			if p.endpoints[0].config.Segmentation && runs > sent/2 {
				t.Errorf("%d datagrams took %d runs, expected less than half as many", sent, runs)
			}
		})
	}
}

func hasIPv6() bool {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// TestNothingIsSealedTwice queues a packet again under its number.
func TestNothingIsSealedTwice(t *testing.T) {
	p, outlet := connectedPair(t, func(*Config) {})
	media, _, _ := outlet.PayloadType(volumetric.MIMEVolumetric)
	header := rtp.Header{Version: 2, PayloadType: media, SequenceNumber: 7, SSRC: outlet.SSRC()}
	if err := outlet.WriteRTP(&header, []byte("once")); err != nil {
		t.Fatal(err)
	}
	if err := outlet.WriteRTP(&header, []byte("twice")); err == nil {
		t.Error("a number was sealed twice")
	}
	header.SequenceNumber++
	if err := outlet.WriteRTP(&header, []byte("after")); err != nil {
		t.Fatal(err)
	}
	p.until("two packets", func() bool { return len(p.heard.packets(outlet.SSRC())) == 2 })
}

// BenchmarkQueue measures the cost of a packet from the outlet's header to the kernel, by run length.
func BenchmarkQueue(b *testing.B) {
	for _, run := range []int{1, 4, 16, 43} {
		b.Run(fmt.Sprintf("run=%d", run), func(b *testing.B) {
			p, outlet := connectedPair(b, func(c *Config) { c.Coalescing = false })
			media, _, _ := outlet.PayloadType(volumetric.MIMEVolumetric)
			header := rtp.Header{Version: 2, PayloadType: media, SSRC: outlet.SSRC()}
			payload := make([]byte, 1160)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				header.SequenceNumber++
				if err := outlet.Queue(&header, payload); err != nil {
					b.Fatal(err)
				}
				if i%run == run-1 {
					p.offers.Flush()
				}
			}
		})
	}
}
