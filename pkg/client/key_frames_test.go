package client

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestKeyFrameRequestsNameTheTrack(t *testing.T) {
	m := newRig(t, Config{})
	m.peer.Store(newPeer(t, m))
	p, _ := published(t, m, described("film", volumetric.MIMEH264, 2, 3))
	for track := range 6 {
		if _, err := p.WritePackets(track/3, volumetric.Quality(track%3), time.Now(), [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range []rtcp.Packet{
		&rtcp.PictureLossIndication{MediaSSRC: 150},
		&rtcp.FullIntraRequest{MediaSSRC: 150, FIR: []rtcp.FIREntry{{SSRC: 150}}},
	} {
		data, err := request.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		m.RTCP(data, time.Now())
		select {
		case e := <-m.session.events:
			if want := (KeyFrameWanted{Publication: "film", Tile: 1, Quality: 2}); e != want {
				t.Errorf("%T asks for %+v, want %+v", request, e, want)
			}
		default:
			t.Errorf("%T is not passed on", request)
		}
	}
}
