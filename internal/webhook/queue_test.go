package webhook

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 26, 23, 0, 0, 0, time.UTC)

func numbered(n int, at time.Time) event { return event{id: fmt.Sprint(n), at: at} }

// ids returns the ids of the waiting events of a room.
func (q *queue) ids(room string) (ids []string) {
	if l := q.byRoom[room]; l != nil {
		for _, e := range l.events {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// TestOrderOfRoom: the events of a room are sent one after the other, those of other rooms meanwhile.
func TestOrderOfRoom(t *testing.T) {
	q := newQueue()
	for i := range 3 {
		q.push("a", numbered(i, start))
	}
	q.push("b", numbered(9, start))
	a, b := q.next(start), q.next(start)
	if a.room != "a" || a.events[0].id != "0" || b.room != "b" || q.next(start) != nil {
		t.Fatalf("in flight are %+v and %+v", a, b)
	}
	q.finish(b, true, start)
	q.finish(a, false, start)
	if q.next(start) != nil {
		t.Error("an event that failed is sent again at once")
	}
	at := q.wake()
	if wait := at.Sub(start); wait > firstRetry || wait < firstRetry*3/4 {
		t.Errorf("the first repetition is after %v", wait)
	}
	for i := range 3 {
		l := q.next(at)
		if l == nil || l.events[0].id != fmt.Sprint(i) {
			t.Fatalf("event %d is followed by %+v", i-1, l)
		}
		q.finish(l, true, at)
	}
	if q.length != 0 || len(q.lines) != 0 || len(q.byRoom) != 0 || q.delivered != 4 || !q.wake().IsZero() {
		t.Errorf("left: %+v", q)
	}
}

// TestDeadEndpoint: repetitions of one event become rare, and events that are too old are dropped.
func TestDeadEndpoint(t *testing.T) {
	q := newQueue()
	for i := range 5 {
		q.push("a", numbered(i, start))
	}
	now, attempts := start, 0
	for q.length > 0 {
		if l := q.next(now); l != nil {
			attempts++
			q.finish(l, false, now)
		}
		if at := q.wake(); !at.IsZero() {
			now = at
		}
	}
	if q.expired != 5 || q.delivered != 0 || q.flying != 0 {
		t.Errorf("%d events expired, expected 5", q.expired)
	}
	// 0.5 s + … + 16 s are 31.5 s; the other 570 s have a repetition each 22.5 to 30 s.
	if attempts < 24 || attempts > 34 {
		t.Errorf("%d deliveries were tried in %v, expected about 30", attempts, maxAge)
	}
	if over := now.Sub(start) - maxAge; over < 0 || over > lastRetry {
		t.Errorf("the events were dropped %v after their time", over)
	}
}

// TestFullQueue: a room that fills the queue loses its own oldest waiting events, other rooms lose none.
func TestFullQueue(t *testing.T) {
	q := newQueue()
	q.push("calm", numbered(0, start))
	for i := range maxQueued + 100 {
		q.push("busy", numbered(i, start))
		if i == 0 {
			if l := q.next(start); l.room != "calm" {
				t.Fatalf("%q is served first", l.room)
			}
			if l := q.next(start); l.room != "busy" {
				t.Fatalf("%q is served second", l.room)
			}
		}
	}
	q.push("calm", numbered(1, start))
	if calm := q.ids("calm"); !slices.Equal(calm, []string{"0", "1"}) {
		t.Errorf("the calm room has %q", calm)
	}
	busy := q.ids("busy")
	if q.length != maxQueued || q.full != 102 || len(busy) != maxQueued-2 {
		t.Errorf("%d events wait, %d of the busy room, %d were dropped", q.length, len(busy), q.full)
	}
	if busy[0] != "0" || busy[1] != "103" || busy[len(busy)-1] != fmt.Sprint(maxQueued+99) {
		t.Errorf("the busy room has %s, %s … %s: expected the event in flight and the newest", busy[0], busy[1],
			busy[len(busy)-1])
	}
}

// TestFullQueueOfDeadEndpoint: events that are dropped because the queue is full do not bring the next delivery
// forward.
func TestFullQueueOfDeadEndpoint(t *testing.T) {
	q := newQueue()
	const perSecond = 20
	attempts := 0
	for i := range 300 * perSecond {
		now := start.Add(time.Duration(i) * time.Second / perSecond)
		q.push("a", numbered(i, now))
		if l := q.next(now); l != nil {
			attempts++
			q.finish(l, false, now)
		}
	}
	if q.full == 0 {
		t.Fatal("the queue has not been full")
	}
	// 31.5 s until the repetitions are 22.5 to 30 s apart.
	if attempts > 20 {
		t.Errorf("%d deliveries were tried in 300 s, expected at most 20", attempts)
	}
}

// TestFairness: with more rooms than requests at a time, no room waits while another is served twice.
func TestFairness(t *testing.T) {
	q := newQueue()
	const rooms = 3 * maxInFlight
	for n := range 4 {
		for i := range rooms {
			q.push(fmt.Sprint(i), numbered(n, start))
		}
	}
	served := make(map[string]int)
	var flying []*line
	for q.length > 0 {
		for l := q.next(start); l != nil; l = q.next(start) {
			flying = append(flying, l)
		}
		if q.flying > maxInFlight || len(flying) != q.flying {
			t.Fatalf("%d requests at a time", q.flying)
		}
		served[flying[0].room]++
		least, most := rooms, 0
		for i := range rooms {
			n := served[fmt.Sprint(i)]
			least, most = min(least, n), max(most, n)
		}
		if most-least > 1 {
			t.Fatalf("one room was served %d times and another one %d times", most, least)
		}
		q.finish(flying[0], true, start)
		flying = flying[1:]
	}
}

// FuzzQueue: for any sequence of events and answers, each room's events are sent in their order, none twice after its
// acceptance, and every event is counted once.
func FuzzQueue(f *testing.F) {
	f.Add(uint64(1), 100)
	f.Add(uint64(2), 20000)
	f.Fuzz(func(t *testing.T, seed uint64, steps int) {
		if steps < 0 || steps > 30000 {
			t.Skip("too many steps")
		}
		random := rand.New(rand.NewPCG(seed, 0))
		q, now := newQueue(), start
		pushed, last := uint64(0), make(map[string]int)
		var flying []*line
		for i := range steps {
			switch random.IntN(5) {
			case 0, 1, 2:
				pushed++
				q.push(fmt.Sprint(random.IntN(20)), numbered(i, now))
			case 3:
				if l := q.next(now); l != nil {
					flying = append(flying, l)
				}
			case 4:
				now = now.Add(time.Duration(random.IntN(int(10 * time.Second))))
				if len(flying) == 0 {
					continue
				}
				n := random.IntN(len(flying))
				l := flying[n]
				flying = slices.Delete(flying, n, n+1)
				var id int
				if _, err := fmt.Sscan(l.events[0].id, &id); err != nil {
					t.Fatal(err)
				}
				if before, found := last[l.room]; found && before >= id {
					t.Fatalf("room %s: event %d follows event %d", l.room, id, before)
				}
				delivered := random.IntN(3) > 0
				if delivered {
					last[l.room] = id
				}
				q.finish(l, delivered, now)
			}
			if q.length > maxQueued || q.flying != len(flying) || q.flying > maxInFlight {
				t.Fatalf("%d events wait and %d are in flight", q.length, q.flying)
			}
		}
		if sum := q.delivered + q.full + q.expired + uint64(q.length); sum != pushed {
			t.Fatalf("%d events were counted, expected %d", sum, pushed)
		}
	})
}
