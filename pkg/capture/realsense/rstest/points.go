package rstest

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Points plays a recording and uses the library to align depth to colour and to compute points,
// frame by frame. Only y and z are converted afterwards, to the axes of clouds.
func Points(t testing.TB, library *rs2.Library, path string) []pointcloud.Cloud {
	t.Helper()
	context, err := library.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	defer context.Close()
	device, err := context.Play(path)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	blocks := make([]*rs2.Block, 3)
	for i, make := range []func() (*rs2.Block, error){library.NewSync,
		func() (*rs2.Block, error) { return library.NewAlign(rs2.Color) }, library.NewPointcloud} {
		if blocks[i], err = make(); err != nil {
			t.Fatal(err)
		}
		defer blocks[i].Close()
	}
	queue, sensors := start(t, library, device)
	defer stop(sensors, queue)
	resumed := make(chan error, 1)
	go func() { resumed <- device.Resume() }()
	var clouds []pointcloud.Cloud
	for begun := time.Now(); ; {
		ended, err := device.Ended()
		if err != nil {
			t.Fatal(err)
		}
		frame, err := queue.Wait(50 * time.Millisecond)
		switch {
		case err != nil:
			t.Fatal(err)
		// before its first image, a recording also reports its end
		case !frame.Valid() && ended && len(clouds) > 0:
			if err := <-resumed; err != nil {
				t.Fatal(err)
			}
			return clouds
		case !frame.Valid() && time.Since(begun) > patience:
			t.Fatalf("%s has no end", path)
		case !frame.Valid():
			continue
		}
		if err := blocks[0].Process(frame); err != nil {
			t.Fatal(err)
		}
		clouds = append(clouds, sets(t, blocks)...)
	}
}

// sets computes points of the available sets of the synchroniser.
func sets(t testing.TB, blocks []*rs2.Block) []pointcloud.Cloud {
	t.Helper()
	var clouds []pointcloud.Cloud
	for {
		set := result(t, blocks[0])
		if !set.Valid() {
			return clouds
		}
		if n, err := set.Len(); err != nil || n != 2 {
			set.Release()
			continue
		}
		if err := blocks[1].Process(set); err != nil {
			t.Fatal(err)
		}
		clouds = append(clouds, points(t, result(t, blocks[1]), blocks[2]))
	}
}

func result(t testing.TB, block *rs2.Block) rs2.Frame {
	t.Helper()
	frame, err := block.Result()
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// points makes a cloud from an aligned set.
func points(t testing.TB, set rs2.Frame, block *rs2.Block) pointcloud.Cloud {
	t.Helper()
	defer set.Release()
	var cloud pointcloud.Cloud
	var colors [][3]uint8
	var vertices [][3]float32
	for i := range 2 {
		image, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		profile, err := image.Profile()
		if err != nil {
			t.Fatal(err)
		}
		if profile.Stream == rs2.Color {
			picture, err := image.Picture()
			if err != nil {
				t.Fatal(err)
			}
			for at := 0; at < len(picture.Pixels); at += 3 {
				colors = append(colors, [3]uint8(picture.Pixels[at:]))
			}
			image.Release()
			continue
		}
		if err := block.Process(image); err != nil {
			t.Fatal(err)
		}
		made := result(t, block)
		seen, err := made.Vertices()
		if err != nil {
			t.Fatal(err)
		}
		vertices = append(vertices, seen...)
		made.Release()
	}
	for i, v := range vertices {
		if v[2] != 0 {
			cloud.Append([3]float32{v[0], -v[1], -v[2]}, colors[i])
		}
	}
	return cloud
}
