package interop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/interop/standin"
)

// switching is the result of many choices: the number of switched tiles, and the time that each choice took.
type switching struct {
	tiles int
	waits []time.Duration
}

// quantile returns a quantile of the times.
func (s *switching) quantile(share float64) time.Duration {
	slices.Sort(s.waits)
	return s.waits[int(share*float64(len(s.waits)-1))]
}

// randomSwitches lets an old peer choose random qualities of the tiles of publishers, and waits each time until they
// arrive, until the given number of tiles has been switched.
func randomSwitches(t *testing.T, a *audience, tiles, qualities, switches int, clients ...int) (s switching) {
	t.Helper()
	random := rand.New(rand.NewPCG(5, uint64(switches)))
	chosen := map[int][]int{}
	for _, client := range clients {
		chosen[client] = make([]int, tiles)
	}
	for s.tiles < switches {
		client := clients[random.IntN(len(clients))]
		next := make([]int, tiles)
		for tile := range next {
			// About one tile in eight is off for a while.
			if next[tile] = random.IntN(qualities); random.IntN(8) == 0 {
				next[tile] = -1
			}
			if next[tile] != chosen[client][tile] {
				s.tiles++
			}
		}
		chosen[client] = next
		began := time.Now()
		a.peer.Choose(oldpeer.Decision{Client: client, Qualities: next})
		eventually(t, "the chosen qualities arrive",
			func() bool { return a.sees(client, next) || a.peer.Fault() != nil })
		if err := a.peer.Fault(); err != nil {
			t.Fatalf("after %d switches: %v", s.tiles, err)
		}
		s.waits = append(s.waits, time.Since(began))
	}
	return s
}

// flow is a stream, which flows while the number of its frames increases.
type flow struct {
	what   string
	frames func() int
}

// flows are a client's tiles and its sound.
func (a *audience) flows(client, tiles int) (flows []flow) {
	for tile := oldpeer.SoundTile; tile < tiles; tile++ {
		source := oldpeer.Source{Client: client, Tile: tile}
		flows = append(flows, flow{fmt.Sprintf("%+v", source), func() int { return a.of(source).Frames }})
	}
	return flows
}

// goOn waits until all flows have new frames.
func goOn(t *testing.T, flows ...flow) {
	t.Helper()
	goOnBy(t, 4, flows...)
}

// goOnBy waits until all flows have the given number of new frames.
func goOnBy(t *testing.T, frames int, flows ...flow) {
	t.Helper()
	var before []int
	for _, f := range flows {
		before = append(before, f.frames())
	}
	for i, f := range flows {
		eventually(t, "there are new frames of "+f.what, func() bool { return f.frames() >= before[i]+frames })
	}
}

func TestOldPeersSwitchOnTheStandIn(t *testing.T) {
	s := startStandIn(t, standin.Faults{})
	p := conversation(1)
	alice := old(t, s.Address(), p)
	bob := old(t, s.Address(), conversation(2))
	goOn(t, alice.flows(2, p.Tiles)...)
	goOn(t, bob.flows(1, p.Tiles)...)
	randomSwitches(t, alice, p.Tiles, p.Qualities, 200, 2)
	goOn(t, bob.flows(1, p.Tiles)...)
	alice.whole(t, 0)
	bob.whole(t, 0)
	for _, a := range []*audience{alice, bob} {
		if counts := a.peer.Counts(); counts.LostCandidates > 0 || counts.Answers != counts.Offers {
			t.Errorf("%+v", counts)
		}
	}
}
