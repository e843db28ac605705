package transport

import (
	"testing"
	"time"
)

// request stands for a STUN request.
var request = []byte{0, 1}

// TestFloodsOfOtherDatagrams sends media, as after the end of a session, and responses: they are not shunned.
func TestFloodsOfOtherDatagrams(t *testing.T) {
	for first, shunned := range map[byte]bool{0: true, 1: false, 19: false, 20: true, 63: true, 64: false, 128: false} {
		var f floods
		for range 10 * floodLimit {
			f.note([]byte{first}, address(0))
		}
		if _, changed := f.step(start); changed != shunned {
			t.Errorf("a flood of datagrams that begin with %d is shunned: %t, expected %t", first, changed, shunned)
		}
	}
}

// TestFloods has one address flood without end and one for a moment, and others send some datagrams too many.
func TestFloods(t *testing.T) {
	var f floods
	rejected := map[int]int{}
	shuns, before := 0, false
	for step := range 400 {
		now := start.Add(time.Duration(step) * consentInterval)
		if !before {
			for range 10 * floodLimit {
				f.note(request, address(0))
			}
		}
		if step == 0 {
			for range floodLimit {
				f.note(request, address(1))
			}
		}
		for n := range 10 * maxFlooders {
			f.note(request, address(2+n))
		}
		rejections, changed := f.step(now)
		if !changed {
			if before {
				rejected[0]++
			}
			continue
		}
		shunned := map[int]bool{}
		for _, r := range rejections {
			for n := range 2 {
				shunned[n] = shunned[n] || r.Peer == address(n)
			}
			if r.Peer != address(0) && r.Peer != address(1) {
				t.Fatalf("%v is rejected, which has sent few", r.Peer)
			}
		}
		if shunned[1] != (step < 4) {
			t.Errorf("after %d steps the short flood's address is shunned: %t", step, shunned[1])
		}
		if shunned[0] && !before {
			shuns++
		}
		if before = shunned[0]; before {
			rejected[0]++
		}
	}
	// 1 + 2 + 4 + 8 s, then 16 s each, with a step between them, in 100 s.
	if shuns < 8 || shuns > 10 || rejected[0] < 380 {
		t.Errorf("the long flood was shunned %d times, for %d of 400 intervals; expected about 9 times, and nearly all", shuns, rejected[0])
	}
	if len(f.refused) > maxFlooders {
		t.Errorf("%d addresses are counted, expected %d at most", len(f.refused), maxFlooders)
	}
}

// TestManyFloods come from more addresses than can be shunned.
func TestManyFloods(t *testing.T) {
	var f floods
	for n := range maxFlooders {
		for range floodLimit {
			f.note(request, address(n))
		}
	}
	if rejections, changed := f.step(start); !changed || len(rejections) != 2*maxShunned {
		t.Errorf("%d rejections, changed %t; expected %d", len(rejections), changed, 2*maxShunned)
	}
	if rejections, changed := f.step(start.Add(leastShun)); !changed || len(rejections) != 0 {
		t.Errorf("%d rejections after the time is over, changed %t; expected none", len(rejections), changed)
	}
	if f.step(start.Add(3 * leastShun)); len(f.shunned) != 0 {
		t.Errorf("%d addresses are remembered, expected none", len(f.shunned))
	}
}
