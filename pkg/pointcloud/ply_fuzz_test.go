package pointcloud

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
)

func FuzzReadPLY(f *testing.F) {
	f.Add(
		[]byte(
			"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n" +
				"property uchar red\n" +
				"property uchar green\nproperty uchar blue\nend_header\n1 -2.5 3e-1 0 128 255\n4 5 6 7 8 9\n",
		),
	)
	f.Add(
		[]byte(
			"ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int n\nproperty float x\nproperty " +
				"float y\nproperty float z\n" +
				"element face 1\nproperty list uchar int i\nend_header\n2 8 9 1 2 3\n3 0 0 0\n",
		),
	)
	for _, format := range []Format{BinaryLittleEndian, BinaryBigEndian} {
		f.Add(binaryFile(byteOrder(format), format, false))
		f.Add(binaryFile(byteOrder(format), format, true))
		var file bytes.Buffer
		if err := WritePLY(&file, randomCloud(1, 3), format); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
		var labelled bytes.Buffer
		if err := WritePLY(&labelled, numbered(1, 3), format); err != nil {
			f.Fatal(err)
		}
		f.Add(labelled.Bytes())
	}
	reader := NewPLYReader(Config{MaxPoints: 100_000})
	f.Fuzz(func(t *testing.T, data []byte) {
		var cloud Cloud
		if err := reader.Read(bytes.NewReader(data), &cloud); err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
				t.Fatalf("%v is neither ErrMalformed nor ErrLimit", err)
			}
			if cloud.Len() != 0 {
				t.Fatalf("%d points after %v", cloud.Len(), err)
			}
			return
		}
		// Every point takes at least six bytes.
		n := cloud.Len()
		if n != len(cloud.Colors) || 6*n > len(data) || len(cloud.Labels) > 0 && n != len(cloud.Labels) ||
			len(cloud.Sources) > 0 && n != len(cloud.Sources) {
			t.Fatalf(
				"%d positions, %d colours, %d labels, %d sources from %d bytes",
				n,
				len(cloud.Colors),
				len(cloud.Labels),
				len(cloud.Sources),
				len(data),
			)
		}
		for _, p := range cloud.Positions {
			for _, v := range p {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					t.Fatalf("point %v is not in space", p)
				}
			}
		}
		var file bytes.Buffer
		if err := WritePLY(&file, &cloud, BinaryLittleEndian); err != nil {
			t.Fatal(err)
		}
		var again Cloud
		if err := reader.Read(
			&file,
			&again,
		); err != nil || !slices.Equal(again.Positions, cloud.Positions) || !slices.Equal(again.Colors, cloud.Colors) ||
			!slices.Equal(again.Labels, cloud.Labels) ||
			!slices.Equal(again.Sources, cloud.Sources) {
			t.Fatalf("written and read back it differs: %v", err)
		}
	})
}

func BenchmarkReadPLY(b *testing.B) {
	cloud := randomCloud(1, 300_000)
	for _, format := range []Format{BinaryLittleEndian, BinaryBigEndian, ASCII} {
		b.Run(format.String(), func(b *testing.B) {
			var file bytes.Buffer
			if err := WritePLY(&file, cloud, format); err != nil {
				b.Fatal(err)
			}
			reader := NewPLYReader(DefaultConfig())
			var into Cloud
			b.ReportAllocs()
			for b.Loop() {
				if err := reader.Read(bytes.NewReader(file.Bytes()), &into); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
		})
	}
}

func BenchmarkWritePLY(b *testing.B) {
	cloud := randomCloud(1, 300_000)
	for _, format := range []Format{BinaryLittleEndian, ASCII} {
		b.Run(format.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := WritePLY(io.Discard, cloud, format); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cloud.Len()), "ns/point")
		})
	}
}
