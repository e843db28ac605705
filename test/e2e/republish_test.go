package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/wait"
)

// TestRepublishingTheSameName republishes a name while the offer for another publication is under way.
func TestRepublishingTheSameName(t *testing.T) {
	c := startConference(t, wide)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := joinAs(t, client.Config{URL: c.Server.URL(), Room: "room", Identity: "alice"})
	works := func(p *client.Publisher) func() bool {
		return func() bool {
			_, err := p.WriteFrame(0, 0, client.OutgoingFrame{Number: 1, Capture: time.Now(), Data: []byte("x")})
			return err == nil
		}
	}
	first, other := body(1, 1).Publication(), body(16, 4).Publication()
	other.Name = "other"
	former, err := s.Publish(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the first publication can be written", works(former))
	if _, err := s.Publish(ctx, other); err != nil {
		t.Fatal(err)
	}
	if err := s.Unpublish(ctx, first.Name); err != nil {
		t.Fatal(err)
	}
	again, err := s.Publish(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the new publication can be written", works(again))
}
