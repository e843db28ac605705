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
	// calm is the longest delay of a wake-up, in a page or in the test, at which missing frames and pauses of sound
	// count.
	calm = 100 * time.Millisecond
	// mostQuiet is the longest pause of sound, in milliseconds. The pauses of the recording last 83 ms.
	mostQuiet = 300
	// dead is the delay of a page or a server at which the page may take the server for dead, and resume: silentAfter
	// and replyWithin in clients/web/src/signal/silence.ts.
	dead = 900 * time.Millisecond
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
	Sent, Tiles [][]int64
	// Skipped is the number of frames that were complete only after a newer one.
	Skipped int
	// Delay is the longest delay of a timer of the page, in milliseconds.
	Delay    float64
	States   []state
	Rejected int
	Messages string
}

// state is a state of the session, with its reason.
type state struct{ State, Why string }

// interrupted reports whether the session was interrupted. A server without a reply after a long delay is no fault.
func (r received) interrupted(stalled time.Duration) bool {
	if stalled < dead {
		return len(r.States) > 0
	}
	return slices.ContainsFunc(r.States, func(s state) bool {
		return s.State != "joined" && s.Why != "the server does not answer"
	})
}

// judge returns how many frames came twice, and how many of those that were sent did not come. The last frames may be
// under way.
func (r received) judge() (repeated, missing int) {
	for tile, numbers := range r.Tiles {
		different := slices.Compact(slices.Sorted(slices.Values(numbers)))
		repeated += len(numbers) - len(different)
		for _, number := range r.Sent[tile] {
			if _, found := slices.BinarySearch(different, number); !found && number > different[0] &&
				number < different[len(different)-1]-5 {
				missing++
			}
		}
	}
	return repeated, missing - r.Skipped
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
	v := begin(t, "moved.mjs", pageURL(nodes[0].Server), pageURL(nodes[1].Server), fragment)
	var facts struct {
		Session  string
		Ada, Eye received
		// Quiet is the longest time without sound at the receiver, in milliseconds.
		Quiet float64
	}
	v.expect("watching", &facts)
	session, stalls := facts.Session, wait.WatchStalls(t)
	v.goOn()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nodes[0].Server.Drain(ctx)
	v.expect("moved", &facts)
	if facts.Session != session {
		t.Error("the page has another session, expected the one before to continue")
	}
	stalled := max(stalls.Longest(), time.Duration(max(facts.Ada.Delay, facts.Eye.Delay))*time.Millisecond)
	t.Logf("without sound for at most %.0f ms, delays up to %v", facts.Quiet, stalled)
	if facts.Quiet > mostQuiet && stalled < calm {
		t.Errorf("without sound for %.0f ms, expected at most %d ms", facts.Quiet, mostQuiet)
	}
	for name, r := range map[string]received{"the page": facts.Ada, "the receiver": facts.Eye} {
		repeated, missing := r.judge()
		t.Logf("%s: %d frames missing, %d repeated", name, missing, repeated)
		if repeated > 0 || missing > 0 && stalled < calm {
			t.Errorf("%s: %d frames are missing, %d came twice, expected none; sent %d, received %d", name, missing,
				repeated, r.Sent, r.Tiles)
		}
		if r.interrupted(stalled) || r.Rejected > 0 || strings.Contains(r.Messages, "broke") {
			t.Errorf("%s was interrupted: states %v, %d frames rejected, messages %q", name, r.States, r.Rejected,
				r.Messages)
		}
	}
	v.expect("done", nil)
}
