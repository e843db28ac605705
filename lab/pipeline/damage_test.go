package pipeline

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// TestDamage: every frame differs after the damage.
func TestDamage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	original := bytes.Repeat([]byte("volumetric"), 100)
	shorter := 0
	for range 1000 {
		got := damage(slices.Clone(original), random)
		if bytes.Equal(got, original) {
			t.Fatal("a frame is unchanged")
		}
		if len(got) < len(original) {
			shorter++
		}
	}
	if shorter < 150 || shorter > 350 {
		t.Errorf("%d of 1000 frames end too soon, want about a quarter", shorter)
	}
	if got := damage(nil, random); len(got) != 1 {
		t.Errorf("an empty frame becomes %v, want bytes", got)
	}
}

// TestVandal: a watcher gets complete frames of the publisher, and only damaged frames of the vandal.
func TestVandal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	load := testbed.Load{Name: objectName, Tiles: 2, Qualities: 2, FrameBytes: 3000, Step: 2, Rate: 20}
	if _, err := c.Join(ctx, testbed.Part{Room: room, Identity: publisherName,
		Loads: []testbed.Load{load}}); err != nil {
		t.Fatal(err)
	}
	v := vandal{from: volumetric.PublicationRef{Participant: publisherName, Publication: objectName},
		random: rand.New(rand.NewPCG(1, 1))}
	if err := v.join(ctx, c.Server.URL(), vandalName); err != nil {
		t.Fatal(err)
	}
	watcher, err := c.Join(ctx, testbed.Part{Room: room, Identity: watcherName, Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	damaged := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: vandalName,
		Publication: objectName}}
	intact := volumetric.TileRef{PublicationRef: v.from}
	err = testbed.Await(ctx, "damaged and undamaged frames arrive", func() bool {
		return watcher.Tile(damaged).Corrupt >= 5 && watcher.Tile(intact).Frames >= 5
	})
	if err != nil {
		t.Error(err)
	}
	watcher.Leave()
	if err := v.leave(); err != nil {
		t.Error(err)
	}
	if v.sent < 5 || watcher.Tile(intact).Corrupt > 0 || watcher.Tile(damaged).Frames > 0 {
		t.Errorf("%d damaged frames were sent; got %+v of the damaged tile, and %+v of the other", v.sent,
			watcher.Tile(damaged), watcher.Tile(intact))
	}
}
