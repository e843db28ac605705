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

// calm is the longest delay of a wake-up at which the frames of a test count. Pages that are delayed for longer may
// skip frames.
const calm = 100 * time.Millisecond

// TestMovedPage drains the node of a page that publishes points and sound: the page continues on the other node. No
// frame is missing or comes twice, for the page and for the receivers on the other node, without encryption and with.
func TestMovedPage(t *testing.T) {
	long.Test(t)
	tools(t)
	for name, fragment := range map[string]string{"plain": "", "encrypted": "#key=abc"} {
		t.Run(name, func(t *testing.T) { movePage(t, fragment) })
	}
}

// received has the frames of another participant at a page, by tile, and the state of the page.
type received struct {
	Tiles    [][]int64
	States   []string
	Missing  int
	Rejected int
	Messages string
}

// judge returns how many frames came twice, and how many did not come. The last frames may be under way.
func (r received) judge() (repeated, missing int) {
	for _, numbers := range r.Tiles {
		slices.Sort(numbers)
		different := slices.Compact(slices.Clone(numbers))
		repeated += len(numbers) - len(different)
		different = different[:max(1, len(different)-5)]
		missing += int(different[len(different)-1]-different[0]) + 1 - len(different)
	}
	return repeated, missing
}

func movePage(t *testing.T, fragment string) {
	recordSpeech(t)
	nodes, err := testbed.NewCluster(t.TempDir(), zap.NewNop(), testbed.Unhurried, "a@eu", "b@us")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		t.Cleanup(node.Close)
	}
	v := begin(t, "moved.mjs", pageURL(nodes[0].Server), pageURL(nodes[1].Server), fragment)
	var facts struct {
		Session  string
		Ada, Eye received
		Quiet    float64
		Lines    int
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
	t.Logf("without sound for at most %.0f ms, the machine stalled for %v", facts.Quiet, stalls.Longest())
	for name, r := range map[string]received{"the page": facts.Ada, "the receiver": facts.Eye} {
		repeated, missing := r.judge()
		t.Logf("%s: %d frames missing, %d repeated", name, missing, repeated)
		if repeated > 0 || missing > 0 && stalls.Longest() < calm {
			t.Errorf("%s: %d frames are missing, %d came twice, expected none", name, missing, repeated)
		}
		if len(r.States) > 0 || r.Rejected > 0 || strings.Contains(r.Messages, "broke") {
			t.Errorf("%s was interrupted: states %v, %d frames rejected, messages %q", name, r.States, r.Rejected,
				r.Messages)
		}
	}
	v.expect("done", nil)
}
