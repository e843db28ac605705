package sfu

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// webcam returns a picture of three qualities.
func webcam(name string) volumetric.Publication {
	return volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVP8, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 1), Picture: &volumetric.Picture{Source: volumetric.SourceCamera},
		Qualities: []volumetric.QualityLevel{
			{Bitrate: 150e3, Width: 320, Height: 180}, {Bitrate: 500e3, Width: 640, Height: 360},
			{Bitrate: 1700e3, Width: 1280, Height: 720},
		},
	}
}

// TestPicturesAreRaisedSlowly raises a picture at most once in two seconds, and lowers it at once.
func TestPicturesAreRaisedSlowly(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, webcam("webcam"))
	bob := s.watches("bob", 400e3)
	s.pass(100 * time.Millisecond)
	bob.expectCarried("0")
	for _, step := range []struct {
		estimate volumetric.Bitrate
		pass     time.Duration
		want     string
	}{
		{1e6, 100 * time.Millisecond, "1"}, // the first raise since the picture was off
		{9e6, raisesAfter - 200*time.Millisecond, "1"},
		{9e6, 1500 * time.Millisecond, "2"},
		{400e3, 100 * time.Millisecond, "0"},
		{9e6, raisesAfter - 200*time.Millisecond, "0"},
		{9e6, 1500 * time.Millisecond, "2"},
	} {
		bob.way.path = known(step.estimate)
		s.pass(step.pass)
		bob.expectCarried(step.want)
	}
}

// raisesAfter is the time between two raises.
const raisesAfter = 2 * time.Second

// TestPicturesStandBesideTheirPerson gives a picture without a pose the place of the person, until the picture has a
// place of its own.
func TestPicturesStandBesideTheirPerson(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, false, webcam("webcam"), ladder(1, 1))
	bob := s.watches("bob", 90e6)
	ahead := signal.Rotation{0, 0, 0, 1}
	look := &signal.Viewpoint{Position: signal.Vector{0, 1.2, 0}, Orientation: ahead, FOV: 60, Aspect: 1.5}
	pose := func(publication string, z float64) *signal.Pose {
		return &signal.Pose{Publication: publication, Position: signal.Vector{0, 0, z}, Orientation: ahead}
	}
	bob.say(look)
	for _, step := range []struct {
		name string
		say  func()
		want string
	}{
		{"the person is in front", func() { alice.say(pose("body", -1)) }, "2 0"},
		{"the person is behind", func() { alice.say(pose("body", 3)) }, "0 0"},
		{"the picture has its own pose", func() { alice.say(pose("webcam", -1)) }, "2 0"},
		{"the receiver has placed the picture behind", func() {
			bob.say(&signal.Arrange{Objects: []signal.Placement{{
				PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "webcam"},
				Position:       signal.Vector{0, 0, 3}, Orientation: ahead,
			}}})
		}, "0 0"},
	} {
		step.say()
		s.pass(2 * raisesAfter)
		if got := bob.carries(); got != step.want {
			t.Errorf("%s: %q is sent, expected %q", step.name, got, step.want)
		}
	}
}

// TestThePlaceOfAPictureFollowsPublications moves a picture when its person is published or ends.
func TestThePlaceOfAPictureFollowsPublications(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, false, webcam("webcam"))
	picture := alice.Publications[0]
	if picture.Beside != nil {
		t.Error("the picture stands beside a person that is not published")
	}
	s.ask(func(r *Room) {
		if refused := r.publish(alice.participant, ladder(1, 1)); refused != nil {
			t.Fatal(refused)
		}
	})
	if body := alice.Publications[1]; picture.Beside != body.Publication {
		t.Error("the picture does not stand beside the person")
	}
	s.ask(func(r *Room) {
		alice.participant.Publications = alice.Publications[:1]
		alice.PlacePictures()
	})
	if picture.Beside != nil {
		t.Error("the picture stands beside a person that has ended")
	}
}

// TestPicturesNeedMediaLines assigns no picture to a receiver over data channels.
func TestPicturesNeedMediaLines(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, false, webcam("webcam"), ladder(1, 1))
	bob := s.enter("bob", false, false)
	for _, chunks := range []bool{false, true} {
		bob.takesChunks = chunks
		want := 2
		if chunks {
			want = 1
		}
		if got := bob.readable(alice.Publications); len(got) != want {
			t.Errorf("over data channels %v: %d publications are readable, expected %d", chunks, len(got), want)
		}
	}
}
