package trunk

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzDecode decodes control messages. What is accepted can be encoded and is within the limits.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"n":1,"hello":{"versions":[1,1],"node":"one","incarnation":7,"lanes":9}}`,
		`{"n":2,"take":{"room":"r","participant":"p","publication":"c","id":1,"tiles":[[0,2],[]],"near":[true],` +
			`"parity":3}}`,
		`{"n":3,"offer":{"room":"r","participant":"p","publication":"c","id":1,"offer":1,` +
			`"streams":[{"track":0,"ssrc":4,"rtx":5,"lane":0}]}}`,
		`{"n":4,"bound":{"room":"r","participant":"p","publication":"c","id":1,"offer":1}}`,
		`{"n":5,"rates":{"room":"r","participant":"p","publication":"c","id":1,"rates":[1,2]}}`,
		`{"n":6,"masks":{"room":"r","participant":"p","publication":"c","id":1,"tiles":[[9999]]}}`,
		`{"n":7,"payload":"AAAA","unknown":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("the error is %v", err)
			}
			return
		}
		if m.Take != nil && !(m.Take.Parity >= 0 && m.Take.Parity <= maxParity) {
			t.Fatalf("parity %v", m.Take.Parity)
		}
		if _, err := json.Marshal(m); err != nil {
			t.Fatal(err)
		}
		o, k := newOrigin(2), newTaking()
		if m.Take != nil {
			o.publish(m.Take.publication, 3, make([]bool, 6))
			o.take(m.Take)
			for _, a := range o.step(start) {
				if a.offer != nil && len(a.offer.Streams) > 6 {
					t.Fatalf("an offer of %d streams for 6 tracks", len(a.offer.Streams))
				}
			}
		}
		if m.Offer != nil {
			k.mirror(m.Offer.publication, 3, 6)
			for range 2 {
				changes, _ := k.offered(m.Offer)
				if len(changes) > 12 {
					t.Fatalf("%d changes of 6 tracks", len(changes))
				}
				k.permit(start)
			}
		}
	})
}

// TestDecodeRefuses checks the errors of messages above the limits.
func TestDecodeRefuses(t *testing.T) {
	name := strings.Repeat("x", maxName+1)
	for _, c := range []struct{ data, want string }{
		{`{`, "unexpected end"},
		{`{"hello":{"versions":[2,3],"node":"one"}}`, "node one speaks versions 2 to 3, this node 1 to 1"},
		{`{"hello":{"versions":[1,1]}}`, "a node name of 0 bytes, expected 1 to 256"},
		{`{"take":{"room":"` + name + `"}}`, "a name of 257 bytes, expected 1 to 256"},
		{`{"take":{"room":"r","participant":"p","publication":"c","tiles":[[64]]}}`, "quality 64, expected 0 to"},
		{`{"offer":{"room":"r","participant":"p","publication":"c","streams":[{"ssrc":1,"lane":4}]}}`,
			"a stream for track 0 with SSRC 1 on lane 4"},
		{`{"rates":{"room":"r","participant":"p","publication":"c","rates":[-1]}}`, "a rate of -1 bit/s"},
		{strings.Repeat(" ", maxMessage+1), "131073 bytes, the limit is 131072"},
	} {
		if _, err := decode([]byte(c.data)); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: the error is %v, expected %q", c.data, err, c.want)
		}
	}
}
