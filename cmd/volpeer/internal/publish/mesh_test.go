//go:build cgo

package publish

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco/yardstick"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// cone returns a mesh of 1 + around vertices, 1 m high.
func cone(around int) (*pointcloud.Cloud, [][3]uint32) {
	vertices, faces := new(pointcloud.Cloud), [][3]uint32(nil)
	vertices.Append([3]float32{0, 1, 0}, [3]uint8{255, 0, 0})
	for i := range around {
		angle := 2 * math.Pi * float64(i) / float64(around)
		vertices.Append([3]float32{float32(math.Cos(angle)), 0, float32(math.Sin(angle))}, [3]uint8{0, uint8(i), 0})
		faces = append(faces, [3]uint32{0, uint32(i + 1), uint32((i+1)%around + 1)})
	}
	return vertices, faces
}

// TestMeshes publishes triangle meshes, as encoded by any encoder of Draco, through a server that does not know them. A
// watcher decodes the vertices.
func TestMeshes(t *testing.T) {
	v := openVenue(t)
	vertices, faces := cone(100)
	mesh, err := yardstick.EncodeMesh(vertices, faces, codec.Params{PositionBits: 12, Speed: 5})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	entry := v.enter("alice")
	session, err := entry.Join(ctx, client.Config{Publications: []volumetric.Publication{{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "codec=drcm"},
		Tiles:     []volumetric.Tile{{Box: vertices.Bounds()}},
		Qualities: []volumetric.QualityLevel{{Name: "all", Bitrate: volumetric.Bitrate(len(mesh) * 8 * 30)}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var publishing sync.WaitGroup
	publishing.Go(func() {
		ticker := time.NewTicker(time.Second / 30)
		defer ticker.Stop()
		for number := uint32(0); ; number++ {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				frame := client.OutgoingFrame{Number: number, Capture: now, Codec: codec.FourCC{'d', 'r', 'c', 'm'},
					Data: mesh}
				if _, err := session.Publisher("body").WriteFrame(0, 0, frame); err != nil &&
					!errors.Is(err, client.ErrNotConnected) {
					t.Error(err)
					return
				}
			}
		}
	})
	folder := t.TempDir()
	commands, typed := io.Pipe()
	publishing.Go(func() {
		wait.Until(t, "a decoded mesh", func() bool { return len(shown(t, folder)) > 0 })
		_, _ = io.WriteString(typed, "quit\n")
		_ = typed.Close()
	})
	var out strings.Builder
	w := &watch.Options{Room: v.enter("bob"), Quality: "auto", Save: folder, JSON: true, Commands: true}
	watched := w.Run(ctx, commands, &out, io.Discard, slog.New(slog.DiscardHandler))
	stop()
	publishing.Wait()
	_ = session.Close()
	if watched != nil {
		t.Fatal(watched)
	}
	var sum summary.Summary
	if err := json.Unmarshal([]byte(out.String()), &sum); err != nil || sum.Decoded == 0 || sum.Undecodable != 0 {
		t.Errorf("expected decoded frames only, got %v, %s", err, out.String())
	}
	file, err := os.Open(shown(t, folder)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var decoded pointcloud.Cloud
	if err := pointcloud.ReadPLY(file, &decoded); err != nil {
		t.Fatal(err)
	}
	if decoded.Len() != vertices.Len() {
		t.Fatalf("%d vertices were shown, expected %d", decoded.Len(), vertices.Len())
	}
	index := pointcloud.NewIndex(&decoded)
	for i, p := range vertices.Positions {
		// Half a step of 2 m / 4095 on each axis.
		if nearest, distance := index.Nearest(p); distance > 0.0005 || decoded.Colors[nearest] != vertices.Colors[i] {
			t.Errorf("vertex %v %v is shown at %v %v", p, vertices.Colors[i], decoded.Positions[nearest],
				decoded.Colors[nearest])
		}
	}
}
