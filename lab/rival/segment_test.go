package rival

import (
	"slices"
	"testing"

	"github.com/volsfu/volsfu/internal/ecn"
)

func TestSegments(t *testing.T) {
	b := appendSegment(nil, 1<<40+7, 1472)
	if number, ok := parseSegment(b); !ok || number != 1<<40+7 || len(b) != 1472 {
		t.Errorf("number %d of %d bytes, %v", number, len(b), ok)
	}
	for name, wrong := range map[string][]byte{
		"empty": {}, "short": b[:segmentHeader-1],
		"an acknowledgement": appendAcknowledgements(nil, make([]acknowledgement, 2)),
	} {
		if _, ok := parseSegment(wrong); ok {
			t.Errorf("%s: taken for a segment", name)
		}
	}
}

func TestAcknowledgements(t *testing.T) {
	list := []acknowledgement{{5, ecn.ECT1}, {6, ecn.CE}, {1 << 50, ecn.NotECT}}
	b := appendAcknowledgements(nil, list)
	before := []acknowledgement{{1, ecn.CE}}
	if got, ok := parseAcknowledgements(b, before); !ok || !slices.Equal(got, append(before, list...)) {
		t.Errorf("%v, %v", got, ok)
	}
	unknown := slices.Clone(b)
	unknown[len(unknown)-1] = 4
	for name, wrong := range map[string][]byte{
		"empty": {}, "cut off": b[:len(b)-1], "a segment": appendSegment(nil, 1, 40), "an unknown codepoint": unknown,
	} {
		if got, ok := parseAcknowledgements(wrong, before); ok || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}

func FuzzParseAcknowledgements(f *testing.F) {
	f.Add(appendAcknowledgements(nil, []acknowledgement{{5, ecn.ECT1}, {6, ecn.CE}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, ok := parseAcknowledgements(b, nil)
		if again := appendAcknowledgements(nil, list); ok && string(again) != string(b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}
