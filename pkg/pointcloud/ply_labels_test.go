package pointcloud

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestLabelsWriteAndReadBack(t *testing.T) {
	whole := numbered(1, 5000)
	for name, want := range map[string]*Cloud{
		"both":    whole,
		"labels":  {Positions: whole.Positions, Colors: whole.Colors, Labels: whole.Labels},
		"sources": {Positions: whole.Positions, Colors: whole.Colors, Sources: whole.Labels},
	} {
		for _, format := range []Format{BinaryLittleEndian, ASCII, BinaryBigEndian} {
			var file bytes.Buffer
			if err := WritePLY(&file, want, format); err != nil {
				t.Fatal(err)
			}
			// Previous contents must not remain.
			got := *numbered(2, 100)
			if err := ReadPLY(&file, &got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Positions, want.Positions) || !slices.Equal(got.Colors, want.Colors) ||
				!slices.Equal(got.Labels, want.Labels) ||
				!slices.Equal(got.Sources, want.Sources) {
				t.Errorf("%s, %v: %d points are not what was written", name, format, got.Len())
			}
		}
	}
}

func TestReadLabels(t *testing.T) {
	const begin, xyz = "ply\nformat ascii 1.0\nelement vertex 4\n",
		"property float x\nproperty float y\nproperty float z\n"
	for name, c := range map[string]struct {
		file            string
		labels, sources []uint16
	}{
		"none": {begin + xyz + "end_header\n1 2 3\n1 2 3\n1 2 3\n1 2 3\n", nil, nil},
		"other names": {begin + "property uchar tile\nproperty char class\n" + xyz +
			"end_header\n1 2 1 2 3\n15 -1 1 2 3\n0 0 1 2 3\n9 7 1 2 3\n", []uint16{2, 0, 0, 7}, []uint16{1, 15, 0, 9}},
		"the name of ours": {begin + "property int class\nproperty int label\n" + xyz +
			"end_header\n1 2 1 2 3\n1 3 1 2 3\n1 4 1 2 3\n1 5 1 2 3\n", []uint16{2, 3, 4, 5}, nil},
		"too large": {begin + "property int label\n" + xyz +
			"end_header\n65535 1 2 3\n65536 1 2 3\n-70000 1 2 3\n3 1 2 3\n", []uint16{65535, 0, 0, 3}, nil},
		"no whole numbers": {begin + "property float label\n" + xyz +
			"end_header\n1 1 2 3\n1 1 2 3\n1 1 2 3\n1 1 2 3\n", nil, nil},
		"no place for a one": {begin + "property int label\n" + xyz +
			"end_header\n1 1 2 3\n2 nan 2 3\n3 1 2 3\n4 1 2 3\n", []uint16{1, 3, 4}, nil},
	} {
		var got Cloud
		if err := ReadPLY(strings.NewReader(c.file), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(got.Labels, c.labels) || !slices.Equal(got.Sources, c.sources) ||
			len(c.labels) > 0 && got.Len() != len(c.labels) {
			t.Errorf(
				"%s: got labels %v and cameras %v of %d points, want %v and %v",
				name,
				got.Labels,
				got.Sources,
				got.Len(),
				c.labels,
				c.sources,
			)
		}
	}
}

func TestWritePLYRefusesHalfLabels(t *testing.T) {
	cloud := numbered(1, 3)
	cloud.Labels = cloud.Labels[:2]
	if err := WritePLY(
		io.Discard,
		cloud,
		ASCII,
	); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "3 points and 2 labels") {
		t.Errorf("got %v, want ErrFormat that names the labels", err)
	}
}
