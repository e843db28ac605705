package icetcp

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// numbered returns a packet of a length that contains a number.
func numbered(n, length int) []byte {
	return append([]byte(fmt.Sprintf("%08d", n)), make([]byte, length-8)...)
}

// batched returns the numbers of the packets in a batch.
func batched(batch []byte, length int) (numbers []string) {
	for at := 0; at < len(batch); at += length {
		numbers = append(numbers, string(bytes.TrimLeft(batch[at:at+8], "0")))
	}
	return numbers
}

func TestTCPQueueLeavesOutWhatIsOld(t *testing.T) {
	const length = 100
	q := queue{age: 250 * time.Millisecond, limit: 1000}
	now := time.Unix(1_795_188_600, 0)
	room := make([]byte, 0, 250)
	expect := func(what, want string, dropped uint64) {
		t.Helper()
		if got := fmt.Sprint(batched(q.take(room, now), length)); got != want || q.dropped != dropped {
			t.Errorf("%s: took %s and left out %d, expected %s and %d", what, got, q.dropped, want, dropped)
		}
	}
	for n := 1; n <= 5; n++ {
		q.push(numbered(n, length), now)
		now = now.Add(100 * time.Millisecond)
	}
	// The first has waited for 500 ms, the third for 300 ms.
	expect("as many as fit the room that are not too old", "[4 5]", 3)
	expect("nothing", "[]", 3)
	for n := 6; n <= 17; n++ {
		q.push(numbered(n, length), now)
	}
	expect("the oldest made room", "[8 9]", 5)
	now = now.Add(250 * time.Millisecond)
	expect("just in time", "[10 11]", 5)
	now = now.Add(time.Nanosecond)
	expect("all the others", "[]", 11)
	q.push(make([]byte, 1001), now)
	expect("what is larger than all that may wait", "[]", 12)
	q.push(numbered(18, 900), now)
	if got := q.take(room, now); len(got) != 900 {
		t.Errorf("took %d bytes of a packet that is larger than the room", len(got))
	}
	q.age = 0
	q.push(numbered(19, length), now)
	now = now.Add(time.Hour)
	expect("whatever its age", "[19]", 12)
}

// TestTCPQueueKeepsOrderAndMemory pushes and takes at different rates.
func TestTCPQueueKeepsOrderAndMemory(t *testing.T) {
	q := queue{limit: 1 << 20}
	now := time.Unix(1_795_188_600, 0)
	room := make([]byte, 0, batchBytes)
	in, out := 0, 0
	for round := range 1000 {
		for range 1 + round%7 {
			in++
			q.push(numbered(in, 1200), now)
		}
		for _, number := range batched(q.take(room, now), 1200) {
			out++
			if number != fmt.Sprint(out) {
				t.Fatalf("packet %s in place of %d", number, out)
			}
		}
	}
	for in != out {
		out += len(batched(q.take(room, now), 1200))
	}
	if q.waiting() != 0 || q.dropped != 0 {
		t.Errorf("%d bytes wait, %d packets were left out", q.waiting(), q.dropped)
	}
	packet := numbered(1, 1200)
	if allocations := testing.AllocsPerRun(1000, func() {
		for range 10 {
			q.push(packet, now)
		}
		q.take(room, now)
	}); allocations > 0 {
		t.Errorf("%v allocations per batch", allocations)
	}
	for range 500 {
		q.push(packet, now)
	}
	for q.waiting() > 0 {
		q.take(room, now)
	}
	if cap(q.bytes) > keptQueueBytes {
		t.Errorf("%d bytes are kept for nothing", cap(q.bytes))
	}
}

// TestTCPQueueThatIsFullCostsLittle pushes for long into a queue without taking. The memory remains at twice the limit.
func TestTCPQueueThatIsFullCostsLittle(t *testing.T) {
	q := queue{limit: queueBytes}
	now := time.Unix(1_795_188_600, 0)
	packet := numbered(1, 1200)
	push := func() { q.push(packet, now) }
	for range 4 * queueBytes / len(packet) {
		push()
	}
	if allocations := testing.AllocsPerRun(10_000, push); allocations > 0 {
		t.Errorf("%v allocations per packet", allocations)
	}
	if cap(q.bytes) > 3*queueBytes || q.waiting() > queueBytes {
		t.Errorf("%d bytes wait in %d", q.waiting(), cap(q.bytes))
	}
}
