package save

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

func cloud(values ...float32) *pointcloud.Cloud {
	c := &pointcloud.Cloud{}
	for _, v := range values {
		c.Append([3]float32{v, v, v}, [3]uint8{uint8(v), 0, 0})
	}
	return c
}

func TestWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "down")
	w, err := NewWriter(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	marked := cloud(3)
	marked.Labels, marked.Sources = []uint16{9}, []uint16{5}
	w.Write(Frame{"alice", "body", 12, []*pointcloud.Cloud{cloud(1, 2), cloud(), marked}})
	w.Write(Frame{"../alice", "a b.c", 1 << 33, nil})
	w.Close()
	if written, dropped := w.Counts(); written != 2 || dropped != 0 {
		t.Errorf("%d frames written and %d dropped, expected 2 and 0", written, dropped)
	}
	file, err := os.Open(filepath.Join(dir, "alice.body.00000012.ply"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var got pointcloud.Cloud
	if err := pointcloud.ReadPLY(file, &got); err != nil || got.Len() != 3 || got.Positions[2] != [3]float32{3, 3, 3} ||
		got.Colors[1] != [3]uint8{2, 0, 0} {
		t.Errorf("got %+v, %v", got, err)
	}
	if !slices.Equal(got.Labels, []uint16{0, 0, 9}) || !slices.Equal(got.Sources, []uint16{0, 0, 5}) {
		t.Errorf("got labels %v and cameras %v, expected those of the last point", got.Labels, got.Sources)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 || entries[0].Name() != "%2E%2E%2Falice.a%20b%2Ec.8589934592.ply" {
		t.Errorf("got files %v, %v", entries, err)
	}
}

func TestBacklog(t *testing.T) {
	// No goroutine takes frames from this writer.
	w := &Writer{frames: make(chan Frame, backlog)}
	for range backlog + 3 {
		w.Write(Frame{})
	}
	if _, dropped := w.Counts(); dropped != 3 {
		t.Errorf("%d frames dropped, expected 3", dropped)
	}
}

func TestDiskRefuses(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(filepath.Join(dir, "frames"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "frames")); err != nil {
		t.Fatal(err)
	}
	w.Write(Frame{Clouds: []*pointcloud.Cloud{cloud(1)}})
	w.Close()
	if written, dropped := w.Counts(); written != 0 || dropped != 1 {
		t.Errorf("%d frames written and %d dropped, expected 0 and 1", written, dropped)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewWriter(filepath.Join(dir, "file"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("expected an error where the folder is a file")
	}
}
