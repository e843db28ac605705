package browser

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

const (
	// calm is the shortest delay of a wake-up, in a page or in a server, that explains missing frames and pauses of
	// sound.
	calm = 100 * time.Millisecond
	// mostQuiet is the longest pause of sound. The pauses of the recording last 83 ms.
	mostQuiet = 300 * time.Millisecond
	// dead is the delay of a page or a server at which the page may take the server for dead, and resume: silentAfter
	// and replyWithin in clients/web/src/signal/silence.ts.
	dead = 900 * time.Millisecond
	// aftermath is the time around a delay for which the delay explains a failure: the packets of frames before it are
	// repaired late, and the packets that have waited are read after it.
	aftermath = time.Second
)

// TestMovedPage drains the node of a page that publishes points and sound: the page continues on the other node. No
// frame is missing or comes twice, for the page and for the receivers on the other node, without encryption and with.
func TestMovedPage(t *testing.T) {
	long.Test(t)
	tools(t)
	for name, fragment := range map[string]string{"plain": "", "encrypted": "#key=abc"} {
		t.Run(name, func(t *testing.T) { movePage(t, fragment) })
	}
}

// received has the frames of another participant that left there and that arrived at a page, by tile, and the state of
// the page.
type received struct {
	Sent [][]sentFrame
	// Late are the numbers of the frames that were complete only after a newer one.
	Tiles, Late [][]int64
	// Delays are those of the page, Sender are those of the other participant's page.
	Delays, Sender spans
	States         []state
	Rejected       int
	Messages       string
}

// sentFrame is the number of a frame, and the time in milliseconds since 1970 when the frame left its publisher.
type sentFrame struct{ Number, At int64 }

// state is a state of the session since a time in milliseconds since 1970, with its reason.
type state struct {
	At         int64
	State, Why string
}

// span is a time in milliseconds since 1970: a delay of a wake-up, or a pause of sound.
type span struct{ Begin, End int64 }

func (s span) duration() time.Duration { return time.Duration(s.End-s.Begin) * time.Millisecond }

type spans []span

// explain reports whether a delay of a duration or longer explains a failure in a time.
func (ss spans) explain(least time.Duration, begin, end int64) bool {
	around := aftermath.Milliseconds()
	return slices.ContainsFunc(ss, func(s span) bool {
		return s.duration() >= least && begin <= s.End+around && end >= s.Begin-around
	})
}

// serverDelays returns the delays of the test's process, in which the servers are.
func serverDelays(stalls *wait.Stalls) (delays spans) {
	for _, s := range stalls.From(0) {
		delays = append(delays, span{s.Begin.UnixMilli(), s.End.UnixMilli()})
	}
	return delays
}

// interruptions returns the interruptions of the session that delays explain, until the session continues, and reports
// whether there are others. A server without a reply is no fault after a long delay of the page or of the server.
func (r received) interruptions(server spans) (explained spans, other bool) {
	delays := slices.Concat(r.Delays, server)
	interrupted := false
	for _, s := range r.States {
		switch {
		case s.State == "joined" && interrupted:
			explained[len(explained)-1].End = s.At
			interrupted = false
		case s.Why == "the server does not answer" && slices.ContainsFunc(delays, func(d span) bool {
			return d.duration() >= dead && d.Begin <= s.At && s.At <= d.End+aftermath.Milliseconds()
		}):
			explained = append(explained, span{s.At, s.At})
			interrupted = true
		case s.State != "joined" && interrupted:
			// The attempts to resume that follow.
		default:
			other = true
		}
	}
	return explained, other
}

// judge returns how many frames came twice, and how many of those that were sent did not come, without an explanation
// by delays of the pages or of the server, or by explained interruptions. The last frames may be under way.
func (r received) judge(server, interruptions spans) (repeated, missing int) {
	delays := slices.Concat(r.Delays, r.Sender, server)
	for tile, numbers := range r.Tiles {
		different := slices.Compact(slices.Sorted(slices.Values(numbers)))
		repeated += len(numbers) - len(different)
		for _, sent := range r.Sent[tile] {
			_, found := slices.BinarySearch(different, sent.Number)
			if !found && sent.Number > different[0] && sent.Number < different[len(different)-1]-5 &&
				!slices.Contains(r.Late[tile], sent.Number) && !delays.explain(calm, sent.At, sent.At) &&
				!interruptions.explain(0, sent.At, sent.At) {
				missing++
			}
		}
	}
	return repeated, missing
}

// TestDelaysExplainFailuresNearby judges the frames and the states of a page with a delay.
func TestDelaysExplainFailuresNearby(t *testing.T) {
	const silent = "the server does not answer"
	r := received{Tiles: [][]int64{{}}, Sent: [][]sentFrame{{}}, Late: [][]int64{{30}},
		Delays: spans{{5000, 5950}}, Sender: spans{{9000, 9050}}}
	for n := int64(0); n < 150; n++ {
		r.Sent[0] = append(r.Sent[0], sentFrame{n, 100 * n})
		// Frame 20 is missing, 30 is late, the frames around the delay are missing, and so is one near a short delay.
		if n != 20 && n != 30 && (n < 45 || n > 60) && n != 90 {
			r.Tiles[0] = append(r.Tiles[0], n)
		}
	}
	if repeated, missing := r.judge(nil, nil); repeated != 0 || missing != 2 {
		t.Errorf("%d repeated, %d missing, expected none and 2", repeated, missing)
	}
	if _, missing := r.judge(spans{{1500, 1600}}, spans{{8500, 9000}}); missing != 0 {
		t.Errorf("%d missing, expected a delay of the server and an interruption to explain all", missing)
	}
	be := func(at int64, now, why string) state { return state{at, now, why} }
	for name, c := range map[string]struct {
		states []state
		other  bool
	}{
		"none": {nil, false},
		"after the delay": {
			[]state{be(5950, "resuming", silent), be(6200, "resuming", ""), be(6500, "joined", "")}, false,
		},
		"long after":     {[]state{be(7000, "resuming", silent), be(7500, "joined", "")}, true},
		"before":         {[]state{be(4900, "resuming", silent), be(5100, "joined", "")}, true},
		"another reason": {[]state{be(5960, "resuming", "it broke"), be(6100, "joined", "")}, true},
		"twice": {
			[]state{be(5950, "resuming", silent), be(6500, "joined", ""), be(8000, "resuming", silent)}, true,
		},
		"joined without more": {[]state{be(5950, "joined", "")}, true},
	} {
		r.States = c.states
		if _, other := r.interruptions(nil); other != c.other {
			t.Errorf("%s: interrupted is %t, expected %t", name, other, c.other)
		}
	}
}

func movePage(t *testing.T, fragment string) {
	recordSpeech(t)
	nodes, err := testbed.NewCluster(t.TempDir(), zap.NewNop(), testbed.Unhurried, "a@eu", "b@us")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		t.Cleanup(node.Close)
		observe(t, node.Server)
	}
	// The pages record frames before they say that they are watching.
	stalls := wait.WatchStalls(t)
	v := begin(t, "moved.mjs", pageURL(nodes[0].Server), pageURL(nodes[1].Server), fragment)
	var facts struct {
		Session  string
		Ada, Eye received
		// Pauses are the times without sound at the receiver.
		Pauses spans
	}
	v.expect("watching", &facts)
	session := facts.Session
	v.goOn()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nodes[0].Server.Drain(ctx)
	v.expect("moved", &facts)
	if facts.Session != session {
		t.Error("the page has another session, expected the one before to continue")
	}
	server := serverDelays(stalls)
	t.Logf("delays of the server %v, of the page %v, of the receiver %v", server, facts.Ada.Delays, facts.Eye.Delays)
	delays := slices.Concat(server, facts.Ada.Delays, facts.Eye.Delays)
	quiet := time.Duration(0)
	for _, p := range facts.Pauses {
		quiet = max(quiet, p.duration())
		if p.duration() > mostQuiet && !delays.explain(calm, p.Begin, p.End) {
			t.Errorf("without sound for %v, expected at most %v", p.duration(), mostQuiet)
		}
	}
	t.Logf("without sound for at most %v", quiet)
	for name, r := range map[string]received{"the page": facts.Ada, "the receiver": facts.Eye} {
		interruptions, interrupted := r.interruptions(server)
		repeated, missing := r.judge(server, interruptions)
		t.Logf("%s: %d frames missing, %d repeated, late %d", name, missing, repeated, r.Late)
		if repeated > 0 || missing > 0 {
			t.Errorf("%s: %d frames are missing, %d came twice, expected none; sent %d, received %d", name, missing,
				repeated, r.Sent, r.Tiles)
		}
		if interrupted || r.Rejected > 0 || strings.Contains(r.Messages, "broke") {
			t.Errorf("%s was interrupted: states %v, %d frames rejected, messages %q", name, r.States, r.Rejected,
				r.Messages)
		}
	}
	v.expect("done", nil)
}
