package conference

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink discards arrivals.
type sink struct{}

func (sink) Take(*carriage.Arrival) {}

// TestSendWithoutReceivers: a frame without receivers has no copies, and its bytes are not counted.
func TestSendWithoutReceivers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listening, served := make(chan string, 1), make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	const secret = "a secret of thirty-two characters"
	go func() {
		_, err := Serve(serving, Settings{Address: "127.0.0.1:0", Secret: secret, Suppression: demand.Strict,
			Pacing: pacing.Default, Controller: congestion.ControllerAuto},
			func(address string) { listening <- address })
		served <- err
	}()
	var address string
	select {
	case address = <-listening:
	case err := <-served:
		t.Fatal(err)
	}
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
	}
	c, err := Join(ctx, Config{Address: address, Secret: secret, Name: "ada", Publication: &body})
	if err != nil {
		t.Fatal(err)
	}
	running, leave := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running, sink{}) }()
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	frame := &carriage.Frame{Capture: time.Now(), Bytes: make([]byte, 5000)}
	wait.Until(t, "the server reports no subscriber of the track", func() bool { return !c.Wanted(0, 0) })
	before := c.Traffic().Sent
	if d, err := c.Send(ctx, frame); err != nil || d.Copies != 0 || c.Traffic().Sent != before {
		t.Errorf("got %+v, %v, %d bytes counted; want none of a frame without receivers", d, err,
			c.Traffic().Sent-before)
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
