package trust

import (
	"bytes"
	"os"
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// TestShortKeys runs an encrypted room, and searches the memory of the server. Frames arrive late on a busy machine.
func TestShortKeys(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu", "volpeer"), nil, 5)
}

// TestShortLoss runs an encrypted room over lossy links.
func TestShortLoss(t *testing.T) {
	long.Test(t)
	measureShort(t, newShort(t, "volsfu", "volpeer"), nil, 6)
}

// TestScanMemory searches this process.
func TestScanMemory(t *testing.T) {
	// The texts to search for are in the memory, too, so the text that is found is a copy.
	text := random(48)
	copies := bytes.Repeat(text, 3)
	absent := random(48)
	searched := map[string][]byte{"present": text, "absent": absent}
	found, read, err := scanMemory(os.Getpid(), searched)
	if err != nil || read == 0 {
		t.Fatalf("%d bytes, %v", read, err)
	}
	if found["present"] < 4 || found["absent"] < 1 || found["absent"] >= found["present"] {
		t.Errorf("found %v of %d copies", found, len(copies)/len(text))
	}
}

func TestCountBefore(t *testing.T) {
	for _, test := range []struct {
		data, text string
		offset     int
		want       int64
	}{
		{"aaaa", "aa", 4, 3}, {"aaaa", "aa", 2, 2}, {"", "a", 0, 0}, {"xay", "a", 1, 0}, {"xay", "a", 2, 1},
	} {
		if got := countBefore([]byte(test.data), []byte(test.text), test.offset); got != test.want {
			t.Errorf("%q in %q before %d: got %d, expected %d", test.text, test.data, test.offset, got, test.want)
		}
	}
}
