package direct

import (
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/program"
)

// begin connects a producer and a consumer over a link whose forward direction has the given profile, and sends for a
// second.
func begin(t *testing.T, profile string, points int, produce ...string) (*Metered, []Frame, Summary) {
	t.Helper()
	forth, err := netem.ParseProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	back, err := netem.ParseProfile("delay=20ms")
	if err != nil {
		t.Fatal(err)
	}
	network, skipped, err := OpenMetered(t.Context(), topology.Pair("producer", "consumer",
		topology.Link{Forth: topology.Direction{Config: forth}, Back: topology.Direction{Config: back}}))
	if errors.Is(err, router.ErrPrivileges) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if skipped != nil {
		t.Skip(skipped.Reason)
	}
	t.Cleanup(func() {
		if err := network.Network.Close(); err != nil {
			t.Error(err)
		}
	})
	const length = time.Second
	settings := &experiment.Settings{Duration: length, Folder: t.TempDir(),
		Programs: program.Static().Folder(t, "vollab"), Seed: 1}
	source := SourceOf(Figure, points, "")
	run, err := Start(t.Context(), Config{
		Network: network.Network, Producer: "producer", Consumer: "consumer", Length: length,
		Produce: append(append(source.Flags(30, settings), "--codec", "raw", "--transport", "udp"), produce...),
	}, settings)
	if err != nil {
		t.Fatal(err)
	}
	frames, summary, err := run.Wait(t.Context(), length)
	if err != nil {
		t.Fatal(err)
	}
	return network, frames, summary
}

// TestRun: a producer and a consumer connect over an emulated link, and the log shows the link's delay.
func TestRun(t *testing.T) {
	network, frames, summary := begin(t, "delay=20ms", 500, "--bitrate", "5Mbit")
	intact := 0
	for i := range frames {
		if frames[i].Outcome == Intact {
			intact++
		}
	}
	if intact < 5 || summary.Captured < intact {
		t.Errorf("%d of %d frames arrived, %d were captured", intact, len(frames), summary.Captured)
	}
	for _, ms := range Span(frames, FirstSent, LastReceived) {
		// The two namespaces share one clock, and the programs treat their clocks as equal. Instants are in whole
		// microseconds.
		if ms < 19.999 {
			t.Errorf("a frame took %g ms over 20 ms of link", ms)
		}
	}
	outcome := experiment.NewOutcome()
	network.Judge(outcome, experiment.Pace{Wanted: summary.Captured, Done: intact})
	if outcome.Validity == experiment.Failed || outcome.Validity == experiment.Skipped {
		t.Errorf("judged %s", outcome.Validity)
	}
}

// TestFoundNothing: a consumer that printed that no frame was decoded and then failed for another reason counts as a
// failure.
func TestFoundNothing(t *testing.T) {
	const nothing = `{"frames_decoded":0,"packets_received":12}`
	for _, test := range []struct {
		name, script string
		want         bool
	}{
		{"nothing decoded", "echo '" + nothing + "'; exit 3", true},
		{"another failure", "echo '" + nothing + "'; exit 1", false},
		{"killed after its summary", "echo '" + nothing + "'; kill -KILL $$", false},
		{"no packet", `echo '{"frames_decoded":0,"packets_received":0}'; exit 3`, false},
		{"no summary", "exit 3", false},
		{"all well", `echo '{"frames_decoded":9,"packets_received":12}'`, false},
	} {
		consumer, err := lab.StartProgram(test.name, "/bin/sh", nil, "-c", test.script)
		if err != nil {
			t.Fatal(err)
		}
		ended := consumer.Wait(t.Context())
		if got := foundNothing(ended, consumer.Output()); got != test.want {
			t.Errorf("%s, ended with %v: result %v, want %v", test.name, ended, got, test.want)
		}
	}
}

// TestNoCompleteFrames: every frame of 90 kB that is sent at once loses packets in a queue of 10 kB, without repair.
// This is a result, not a failure.
func TestNoCompleteFrames(t *testing.T) {
	_, frames, summary := begin(t, "rate=20Mbit,delay=20ms,queue=10kB", 6000, "--mode", "paper002", "--gap", "0s")
	if len(frames) == 0 || summary.Captured == 0 {
		t.Fatalf("%d frames in the log, %d captured", len(frames), summary.Captured)
	}
	for i := range frames {
		if frames[i].Outcome == Intact {
			t.Errorf("frame %d arrived complete", frames[i].Number)
		}
	}
}
