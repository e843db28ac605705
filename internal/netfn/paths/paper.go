package paths

import (
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// Paper is Algorithm 1 of paper 003, sliding window based successive path elimination, as printed. It serves for
// comparison only: the algorithm waits for all copies of a packet, so that one lost copy ends it, and one window of
// packets decides, so that it ends with whatever path is fast at that moment.
type Paper struct {
	window    int           // W, in packets
	tolerance time.Duration // α
	paths     Set           // P
	packets   int           // n
	rewards   []Set         // R of the last W packets: bit i is R_i
	counts    [wire.MaxPaths]int
	done      bool
}

// NewPaper returns the algorithm for a window of W > 0 packets and a tolerated gap α. The paper's values are 100 and
// 5 ms.
func NewPaper(paths Set, window int, tolerance time.Duration) *Paper {
	return &Paper{window: window, tolerance: tolerance, paths: paths, rewards: make([]Set, window)}
}

// Packet takes the arrival times of all copies of the next packet, by path, and returns the trimmed set of paths. The
// call for a packet of which a copy is lost never comes. After the algorithm has returned a single path the set does
// not change.
func (p *Paper) Packet(arrived [wire.MaxPaths]time.Duration) Set {
	if p.done || p.paths == 0 {
		return p.paths
	}
	p.packets++
	first := time.Duration(-1)
	for i, at := range arrived {
		if p.paths.Has(i) && (first < 0 || at < first) { // line 2
			first = at
		}
	}
	slot := p.packets % p.window // of packet n and of packet n − W
	old := p.rewards[slot]
	p.rewards[slot] = 0
	for i, at := range arrived { // line 3
		if !p.paths.Has(i) {
			continue
		}
		if at-first < p.tolerance { // lines 4 to 6
			p.rewards[slot] |= of(i)
			p.counts[i]++
		}
		if p.packets > p.window { // lines 7 to 10
			if old.Has(i) {
				p.counts[i]--
			}
			if p.counts[i] == 0 {
				p.paths &^= of(i)
			}
		}
	}
	if p.packets > p.window { // lines 11 to 14
		for i := range p.counts {
			if p.paths.Has(i) && p.counts[i] == p.window {
				p.paths, p.done = of(i), true
				break
			}
		}
	}
	return p.paths
}

// Reward returns N of a path: the number of the last W packets that the path has delivered within α of the fastest
// copy. It does not change after the path has been removed.
func (p *Paper) Reward(path int) int { return p.counts[path] }
