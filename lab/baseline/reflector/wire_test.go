package reflector

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/carriage"
)

func TestHeader(t *testing.T) {
	want := Header{Stream: "a/14/1", Timestamp: 1700000000123, Length: 51234}
	line, err := want.Append([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	line = line[len("before"):]
	if len(line) != HeaderSize || !strings.HasPrefix(string(line), "2,a/14/1,1700000000123,51234,000") ||
		!bytes.HasSuffix(line, []byte("00\n")) {
		t.Errorf("got %q", line)
	}
	if got, err := Parse(line); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, stream := range []string{"a,b", "a\nb", strings.Repeat("a", HeaderSize)} {
		if dst, err := (Header{Stream: stream}).Append([]byte("x")); !errors.Is(err, ErrHeader) || string(dst) != "x" {
			t.Errorf("%.20q: got %q, %v, want ErrHeader and the previous content", stream, dst, err)
		}
	}
}

// padded returns a line of the right size.
func padded(text string) []byte {
	return []byte(text + strings.Repeat("0", HeaderSize-1-len(text)) + "\n")
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string][]byte{
		"empty":          nil,
		"short":          padded("2,a,1,2,")[:100],
		"no line feed":   append(padded("2,a,1,2,")[:HeaderSize-1], '0'),
		"version":        padded("1,a,1,2,"),
		"few fields":     padded("2,a,1,"),
		"many fields":    padded("2,a,1,2,3,"),
		"no time":        padded("2,a,now,2,"),
		"negative":       padded("2,a,1,-2,"),
		"too long":       padded("2,a,1,999999999,"),
		"longer than 64": padded("2,a,1,99999999999999999999999,"),
	} {
		if _, err := Parse(line); !errors.Is(err, ErrHeader) {
			t.Errorf("%s: got %v, want ErrHeader", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	line, _ := Header{"a/0/0", 1, 2}.Append(nil)
	f.Add(line)
	f.Add([]byte("2,"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := Parse(data)
		if err != nil {
			return
		}
		if again, err := h.Append(nil); err == nil {
			if got, err := Parse(again); err != nil || got != h {
				t.Errorf("%q was read as %+v, and its text as %+v, %v", data, h, got, err)
			}
		}
		// The data after a header is read as far as available.
		_, _, _ = readPacket(bytes.NewReader(append(bytes.Clone(data), 1, 2, 3)))
	})
}

func TestStreamName(t *testing.T) {
	job := carriage.Job{Tile: 14, Quality: 1}
	if peer, got, ok := ParseStreamName(StreamName("a", job)); !ok || peer != "a" || got != job {
		t.Errorf("got %q, %v, %v", peer, got, ok)
	}
	for _, name := range []string{"", "a/1", "a/1/2/3", "a/x/1", "a/256/0", "a/0/64", "a/-1/0", "a/0/-1"} {
		if _, _, ok := ParseStreamName(name); ok {
			t.Errorf("%q was read", name)
		}
	}
}

// TestFanout: every client except the sender gets a packet, and a client that does not read gets the first ten packets
// only.
func TestFanout(t *testing.T) {
	f := NewFanout[int](10)
	one, two, slow := f.Join(), f.Join(), f.Join()
	for i := range 12 {
		f.Spread(one, i, 100)
		if got := <-two.Packets(); got != i {
			t.Errorf("got packet %d, want %d", got, i)
		}
	}
	if len(one.Packets()) != 0 || len(slow.Packets()) != 10 {
		t.Errorf("%d packets wait for the sender and %d for the client that does not read, want 0 and 10",
			len(one.Packets()), len(slow.Packets()))
	}
	if c := f.Counts(); c.FramesReceived != 12 || c.FramesDropped != 2 || c.BytesReceived != 1200 {
		t.Errorf("got %+v", c)
	}
	f.Leave(slow)
	f.Leave(slow)
	for i := range 10 {
		if got, open := <-slow.Packets(); !open || got != i {
			t.Errorf("got %d, %v, want the waiting packets, oldest first", got, open)
		}
	}
	if _, open := <-slow.Packets(); open {
		t.Error("expected no more packets for a client that has left")
	}
	f.Spread(one, 1, 1)
}
