package recorder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/switching"
)

// play passes packets to units and returns the units: "7m" is packet 7 with the marker, timestamps change after markers
// and at "/". Packets arrive 20 ms apart.
func play(t testing.TB, audio bool, text string) (string, *units) {
	t.Helper()
	u, pool := &units{audio: audio}, packetlog.NewPool()
	var out []string
	at, timestamp := int64(0), uint32(0)
	take := func() {
		for packets := u.take(at); packets != nil; packets = u.take(at) {
			var numbers []string
			for _, p := range packets {
				numbers = append(numbers, fmt.Sprint(p.Facts.Sequence))
			}
			out = append(out, strings.Join(numbers, "+"))
		}
	}
	for _, word := range strings.Fields(text) {
		if word == "/" {
			timestamp++
			continue
		}
		number, body := int64(0), []byte{1}
		marker := strings.HasSuffix(word, "m")
		if strings.HasSuffix(word, "p") {
			body = nil
		}
		if _, err := fmt.Sscan(strings.TrimRight(word, "mp"), &number); err != nil {
			t.Fatal(err)
		}
		at += 20e6
		p := pool.Get(body)
		p.Facts = switching.Packet{Sequence: number, Timestamp: timestamp, Marker: marker, Last: audio}
		p.Order = at
		log := packetlog.New(packetlog.Limits{Age: 1e9, Bytes: 1 << 20}, packetlog.NewBudget(1<<20))
		log.Append(p)
		u.add(p)
		take()
		if marker {
			timestamp++
		}
	}
	at += int64(reorderTime)
	take()
	return strings.Join(out, " "), u
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		audio      bool
		in, out    string
		incomplete uint64
	}{
		{true, "1 2 3", "1 2 3", 0},
		{true, "1 3 2 4", "1 2 3 4", 0},
		{true, "1 3 4", "1 3 4", 1},
		{true, "5 5 6 4", "5 6", 0},
		{false, "1 2 3m 4 5m", "1+2+3 4+5", 0},
		{false, "1 2 / 3 4m", "1+2 3+4", 0},
		{false, "1 2p 3m 4m", "1+3 4", 0},
		{false, "1 3m 4 5m", "4+5", 1},
		{false, "1 2m 4m 5 6m", "1+2 5+6", 1},
		{false, "1 2", "", 0},
	} {
		got, u := play(t, test.audio, test.in)
		if got != test.out || u.incomplete != test.incomplete {
			t.Errorf("%s: got %q, %d incomplete, expected %q, %d", test.in, got, u.incomplete, test.out,
				test.incomplete)
		}
		u.close()
	}
}
