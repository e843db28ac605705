package description

import (
	"runtime"
	"strings"
	"testing"
)

// TestAnswersPinLittle keeps the results of parsing answers of the maximum length: the memory in use is that of the
// results, not that of the texts.
func TestAnswersPinLittle(t *testing.T) {
	const texts, padding = 8, 6 << 10
	text := offerOfHundreds().Marshal()
	line := "a=rtcp-mux\r\n"
	if !strings.Contains(text, line) {
		t.Fatalf("the description has no line %q to pad", line)
	}
	text = strings.ReplaceAll(text, line, line+"a=padding:"+strings.Repeat("x", padding)+"\r\n")
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	kept := make([]*Description, texts)
	for i := range kept {
		d, err := Parse(strings.Clone(text))
		if err != nil {
			t.Fatal(err)
		}
		kept[i] = d
	}
	after := inUse()
	// 300 lines have 200 bytes each, and their mids.
	if each := (int64(after) - int64(before)) / texts; each > int64(len(text))/8 {
		t.Errorf("a description keeps %d bytes in use, its text has %d", each, len(text))
	}
	runtime.KeepAlive(kept)
}
