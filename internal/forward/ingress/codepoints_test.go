package ingress

import (
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestCodepoint(t *testing.T) {
	for _, test := range []struct {
		counts Codepoints
		want   ecn.Codepoint
		any    bool
	}{
		{Codepoints{}, ecn.NotECT, false},
		{Codepoints{ecn.NotECT: 3, ecn.ECT1: 2}, ecn.NotECT, true},
		{Codepoints{ecn.NotECT: 1, ecn.ECT1: 3, ecn.ECT0: 2}, ecn.ECT1, true},
		{Codepoints{ecn.ECT0: 9}, ecn.ECT0, true},
		{Codepoints{ecn.NotECT: 5, ecn.ECT1: 900, ecn.CE: 1}, ecn.CE, true},
	} {
		if got, any := test.counts.Codepoint(); got != test.want || any != test.any {
			t.Errorf("%v: got %v and %v, expected %v and %v", test.counts, got, any, test.want, test.any)
		}
	}
}

// TestCodepointsOfPublishers sends packets of one publisher with a mark in the first of three seconds, and of another
// without ECN. A third one sends nothing.
func TestCodepointsOfPublishers(t *testing.T) {
	r := newRig(t, nil)
	marked := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	plain := r.publish(r.ingress(&fakePeer{}), 20, volumetric.MIMEVolumetric)
	r.ingress(&fakePeer{})
	for ms := range 3000 {
		codepoint := ecn.ECT1
		if ms == 500 {
			codepoint = ecn.CE
		}
		switch ms {
		case 999:
			if got := r.set.Hops(); got != [4]int{} {
				t.Errorf("the first second is not complete, got %v", got)
			}
		case 1500:
			if got := marked.ingress.Codepoints(); got != (Codepoints{ecn.ECT1: 99, ecn.CE: 1}) {
				t.Errorf("in the first second %v packets arrived, expected 99 ECT(1) and 1 CE", got)
			}
			if got := r.set.Hops(); got != [4]int{ecn.NotECT: 1, ecn.CE: 1} {
				t.Errorf("got the hops %v, expected one with and one without marks", got)
			}
		case 2500:
			if got := r.set.Hops(); got != [4]int{ecn.NotECT: 1, ecn.ECT1: 1} {
				t.Errorf("got the hops %v after a second without marks", got)
			}
		}
		if ms%10 == 0 {
			marked.Next()
			marked.SendInfo(&transport.PacketInfo{At: r.now, ECN: codepoint}, marked.Packets(1144)...)
			plain.Next()
			plain.Send(r.now, plain.Packets(1144)...)
		}
		r.now = r.now.Add(time.Millisecond)
	}
	r.now = r.now.Add(2 * time.Second)
	if got := r.set.Hops(); got != [4]int{} {
		t.Errorf("got the hops %v two seconds after the last packet", got)
	}
}

// TestHopsWhileIngressesStart counts hops while first tracks are bound: a bind starts the goroutine of its ingress.
func TestHopsWhileIngressesStart(t *testing.T) {
	r := live(t, nil)
	var scraping sync.WaitGroup
	stop := make(chan struct{})
	scraping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.set.Hops()
			}
		}
	})
	for n := range uint32(2000) {
		in := r.set.New(&fakePeer{})
		r.publish(in, n+1, volumetric.MIMEVolumetric)
		in.Close()
	}
	close(stop)
	scraping.Wait()
}
