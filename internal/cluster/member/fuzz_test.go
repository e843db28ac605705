package member

import (
	"bytes"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
)

// FuzzPayload decodes payloads of other nodes. A payload that is accepted is encoded and decoded again with the same
// result, and a room receives it.
func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"room":"r","from":"ann","data":{"text":"<hello> & goodbye","to":["bob"]}}`))
	f.Add([]byte(`{"room":"r","ref":{"participant":"ann","publication":"body"},"pose":{"position":[1,2,3]}}`))
	f.Add([]byte(`{"room":"r","operate":{"node":"b","identity":"ann","mute":{"publication":"body","muted":true}}}`))
	f.Add([]byte(`{"room":"r"}`))
	f.Add([]byte(`{"room":"","from":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePayload(data)
		if err != nil {
			return
		}
		again, err := p.encode()
		if err != nil {
			t.Fatalf("%v in the encoding of %s", err, data)
		}
		second, err := decodePayload(again)
		if err != nil {
			t.Fatalf("%v in the encoding of %s: %s", err, data, again)
		}
		if third, err := second.encode(); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%s becomes %s: %v", again, third, err)
		}
	})
}

// TestLongText: the longest data message fits into a payload, whichever characters it has.
func TestLongText(t *testing.T) {
	for _, text := range []string{"<", "&", "\"", "\\", "ü"} {
		long := string(bytes.Repeat([]byte(text), signal.MaxDataBytes/len(text)))
		data, err := (&payload{Room: "r", From: "ann", Data: &signal.Data{Text: long}}).encode()
		if err != nil || len(data) > 2*signal.MaxDataBytes+200 {
			t.Errorf("%q takes %d bytes for each: %v", text, len(data)/signal.MaxDataBytes, err)
		}
	}
}
