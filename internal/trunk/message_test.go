package trunk

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
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
		`{"n":8,"offer":{"room":"r","participant":"p","publication":"c","id":1,"offer":1,"more":true,` +
			`"streams":[{"track":1,"ssrc":4,"rtx":5,"lane":0}]}}`,
		`{"n":9,"parent":{"room":"r","participant":"p","publication":"c","id":1,"path":["one","two"]}}`,
		`{"n":10,"parent":{"room":"r","participant":"p","publication":"c","id":1,"home":"one","path":[]}}`,
		`{"n":11,"take":{"room":"r","participant":"p","publication":"c","id":1,"home":"one","tiles":[[0]],` +
			`"path":["one","two"],"refused":"four"}}`,
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
		followPath(t, m)
		o, k := newOrigin(2), newTaking(start)
		if m.Take != nil {
			o.publish(m.Take.publication, &offered{3, make([]bool, 6)})
			o.take(m.Take)
			actions, _ := o.step(start)
			for _, a := range actions {
				if a.offer != nil && len(a.offer.Streams) > 6 {
					t.Fatalf("an offer of %d streams for 6 tracks", len(a.offer.Streams))
				}
			}
		}
		if m.Offer != nil {
			k.mirror(m.Offer.publication, 3, 6)
			whole, err := k.collect(m.Offer)
			if m.Offer.More == (whole != nil) || err != nil {
				t.Fatalf("the whole offer is %v, more follows: %t, error %v", whole, m.Offer.More, err)
			}
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

// followPath passes a message to a feed that takes from a parent, and to a tree with a node below another. The feed has
// one source and never a path through its own node, and each node of the tree has a path.
func followPath(t *testing.T, m *message) {
	f := newFeed("three", "one")
	f.assign([]string{"one", "two"}, true, true, start)
	if m.Parent != nil && len(m.Parent.Path) > 0 {
		f.assign(m.Parent.Path, true, false, start)
		f.step(start.Add(time.Minute), func(string) bool { return true })
	}
	if f.source == "" || slices.Contains(f.path, "three") || slices.Contains(f.nextPath, "three") {
		t.Fatalf("the feed is %+v", f)
	}
	tree := newTree(1, "one", "", "", func(string) bool { return true })
	for _, node := range []string{"two", "three", "four"} {
		tree.take(node, "", true, "", start)
	}
	if m.Take != nil {
		tree.refuse("three", m.Take.Refused, m.Take.Path, start)
		if len(m.Take.Path) > 0 {
			tree.confirm("three", "", m.Take.Path, start)
			tree.confirm("five", "", m.Take.Path, start)
		}
		tree.step(start.Add(time.Minute))
	}
	for node := range tree.branches {
		if path := tree.path(node); len(path) > len(tree.branches) || slices.Contains(path, node) {
			t.Fatalf("the path of %s is %v", node, path)
		}
	}
}

// TestDecodeRefuses checks the errors of messages above the limits.
func TestDecodeRefuses(t *testing.T) {
	name := strings.Repeat("x", maxName+1)
	for _, c := range []struct{ data, want string }{
		{`{`, "unexpected end"},
		{`{"hello":{"versions":[3,4],"node":"one"}}`, "node one speaks versions 3 to 4, this node 1 to 2"},
		{`{"hello":{"versions":[1,1]}}`, "a node name of 0 bytes, expected 1 to 256"},
		{`{"take":{"room":"` + name + `"}}`, "a name of 257 bytes, expected 1 to 256"},
		{`{"take":{"room":"r","participant":"p","publication":"c","tiles":[[64]]}}`, "quality 64, expected 0 to"},
		{`{"offer":{"room":"r","participant":"p","publication":"c","streams":[{"ssrc":1,"lane":4}]}}`,
			"a stream for track 0 with SSRC 1 on lane 4"},
		{`{"take":{"room":"r","participant":"p","publication":"c","tiles":[[]],"near":[true,true]}}`,
			"near has 2 tiles, tiles has 1"},
		{`{"masks":{"room":"r"},"gave_up":{"room":"r"}}`, "2 contents, expected one"},
		{`{"rates":{"room":"r","participant":"p","publication":"c","rates":[-1]}}`, "a rate of -1 bit/s"},
		{`{"parent":{"room":"r","participant":"p","publication":"c","path":["one","two","one"]}}`,
			"a path with node one twice"},
		{`{"parent":{"room":"r","participant":"p","publication":"c","path":[""]}}`, "a node name of 0 bytes"},
		{`{"take":{"room":"r","participant":"p","publication":"c","path":[` + strings.Repeat(`"x",`, maxPath) +
			`"y"]}}`, "a path of 17 nodes, the limit is 16"},
		{`{"take":{"room":"r","participant":"p","publication":"c","refused":"` + name + `"}}`,
			"a node name of 257 bytes"},
		{`{"take":{"room":"r","participant":"p","publication":"c","home":"` + name + `"}}`,
			"a node name of 257 bytes"},
		{strings.Repeat(" ", maxMessage+1), "262145 bytes, the limit is 262144"},
	} {
		if _, err := decode([]byte(c.data)); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: the error is %v, expected %q", c.data, err, c.want)
		}
	}
}

// TestLaterMessagesAreIgnored decodes a message whose content only later versions know.
func TestLaterMessagesAreIgnored(t *testing.T) {
	if m, err := decode([]byte(`{"n":1,"later":{}}`)); err != nil || m.contents() != 0 {
		t.Errorf("the error is %v", err)
	}
}

// TestLargestMessagesFit encodes the messages of the largest publication. Offers are split.
func TestLargestMessagesFit(t *testing.T) {
	name := strings.Repeat("\x01", maxName)
	p := publication{name, name, name, math.MaxUint64, name}
	var path []string
	for i := range maxPath {
		path = append(path, name[1:]+string(rune('a'+i)))
	}
	whole := &offer{publication: p, Offer: math.MaxUint64}
	r := &rates{publication: p}
	tiles := &tileSets{publication: p}
	for range volumetric.MaxTiles {
		tiles.Tiles = append(tiles.Tiles, nil)
		for q := range volumetric.MaxQualities {
			last := len(tiles.Tiles) - 1
			tiles.Tiles[last] = append(tiles.Tiles[last], q)
			whole.Streams = append(whole.Streams, stream{maxTracks - 1, math.MaxUint32 - 1, math.MaxUint32, 3})
			r.Rates = append(r.Rates, maxRate)
		}
	}
	messages := []*message{{Rates: r}, {Masks: tiles}, {Payload: make([]byte, MaxPayload)},
		{Take: &take{publication: p, Tiles: tiles.Tiles, Near: make([]bool, volumetric.MaxTiles), Parity: maxParity,
			Path: path, Refused: name}}, {Parent: &parent{p, path}}}
	for _, part := range whole.parts() {
		messages = append(messages, &message{Offer: part})
	}
	k := newTaking(start)
	k.mirror(p, volumetric.MaxQualities, maxTracks)
	streams := 0
	for i, m := range messages {
		m.Number = math.MaxUint64
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if decoded.Offer == nil {
			continue
		}
		got, err := k.collect(decoded.Offer)
		if err != nil || (got != nil) != (i == len(messages)-1) {
			t.Fatalf("message %d: the offer is complete: %t, error %v", i, got != nil, err)
		}
		if got != nil {
			streams = len(got.Streams)
		}
	}
	if streams != maxTracks {
		t.Errorf("an offer of %d streams, expected %d", streams, maxTracks)
	}
	for range 2 {
		whole.More = true
		if _, err := k.collect(whole); err != nil {
			return
		}
	}
	t.Error("an offer of more than maxTracks streams was accepted")
}
