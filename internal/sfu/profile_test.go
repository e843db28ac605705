package sfu

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// namedProfile is the profile of clients that identify publishers by numbers and can receive one publication of each
// kind from each publisher.
var namedProfile = Profile{
	Name: "named", OnePerKind: true,
	Named: func(o egress.Outlet, _ subscriber.Name) NamedOutlet { return nil },
	Withheld: func(d *volumetric.Publication) string {
		if d.VR2Gather {
			return ""
		}
		return "in another format"
	},
}

// numberedPublication returns a publication of a publisher with a number, with the given number of tiles and three
// qualities.
func numberedPublication(number uint32, name string, tiles int) *presence.Publication {
	p := &presence.Publication{Publication: subscriber.NewPublication(fmt.Sprint(number), volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, 3),
	})}
	p.Number = number
	return p
}

// roomOf returns a room of participants that each have a publication with the given number of tiles.
func roomOf(tiles map[string]int) *Room {
	r := &Room{roster: roster{participants: make(members)}}
	for identity, n := range tiles {
		p := &participant{
			room: r, Presence: presence.Presence{Identity: identity}, profile: &namedProfile, log: zap.NewNop(),
		}
		r.enter(p)
		r.present.AssignNumber(&p.Presence)
		p.Publications = []*presence.Publication{numberedPublication(p.Number, "body", n)}
		p.Publications[0].Ref.Participant = identity
	}
	return r
}

// TestChoosablePublications checks the publications that a participant may choose: of others, announced, and only the
// first readable publication of each publisher.
func TestChoosablePublications(t *testing.T) {
	r := roomOf(map[string]int{"1": 9, "2": 9, "user 3": 4, "4": 9})
	r.participants["4"].Publications[0].Silent = true
	first := r.participants["1"]
	unread, second := numberedPublication(1, "plain", 2), numberedPublication(1, "desk", 1)
	unread.Description.VR2Gather = false
	first.Publications = append([]*presence.Publication{unread}, append(first.Publications, second)...)
	var got []string
	for _, c := range r.choosable(r.participants["2"]) {
		got = append(got, fmt.Sprintf("%s/%s %d %d %d", c.Participant, c.Publication, c.Number, c.Tiles, c.Highest))
	}
	if want := []string{"1/body 1 9 2", "user 3/body 3 4 2"}; !slices.Equal(got, want) {
		t.Errorf("choosable are %q, expected %q", got, want)
	}
}

// TestSecondPublications checks that such a client receives the first publication of a kind, and the next after the
// first has ended.
func TestSecondPublications(t *testing.T) {
	r := roomOf(map[string]int{"1": 1, "2": 1})
	owner := r.participants["1"]
	owner.Publications = append(owner.Publications, numberedPublication(1, "desk", 1))
	body, desk := owner.Publications[0], owner.Publications[1]
	if r.second(&namedProfile, body) || !r.second(&namedProfile, desk) {
		t.Error("the desk is the first publication of its publisher, or the body is not")
	}
	if list := r.successors(&owner.Presence, body); len(list) != 1 || list[0] != r.participants["2"] {
		t.Errorf("%d participants are sent another publication after the first, expected one", len(list))
	}
	if list := r.successors(&owner.Presence, desk); len(list) != 0 {
		t.Errorf("%d participants are sent another publication after the second, expected none", len(list))
	}
	body.Description.VR2Gather = false
	if r.second(&namedProfile, desk) {
		t.Error("a publication that the client cannot read counts as the first")
	}
}

// TestClientNumbers checks the numbers of participants.
func TestClientNumbers(t *testing.T) {
	r := &Room{roster: roster{participants: make(members)}}
	for _, step := range []struct {
		identity string
		want     uint32
	}{{"7", 7}, {"user 3", 3}, {"guest 7", 1000}, {"ada", 1001}, {"0", 1002}, {"99999999999999999999", 1003},
		{"room-1000", 1004}} {
		p := &participant{room: r, Presence: presence.Presence{Identity: step.identity}, profile: &signallingProfile}
		r.enter(p)
		r.present.AssignNumber(&p.Presence)
		if p.Number != step.want || r.present.ByNumber(p.Number) != &p.Presence {
			t.Errorf("%q is %d, expected %d", step.identity, p.Number, step.want)
		}
	}
}

// FuzzPrintable checks that names of codecs from the network are safe in messages.
func FuzzPrintable(f *testing.F) {
	f.Add([]byte("cwi1"))
	f.Add([]byte{0, '"', '\n', 0xff})
	f.Fuzz(func(t *testing.T, text []byte) {
		var codec volumetric.FourCC
		copy(codec[:], text)
		for _, c := range printable(codec) {
			if c != '.' && !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z') {
				t.Fatalf("%q of %q", printable(codec), text)
			}
		}
	})
}

// TestWantedPublications checks a client that watches one participant and asks for one of its publications: the client
// waits until the publication exists, and receives no other.
func TestWantedPublications(t *testing.T) {
	r := roomOf(map[string]int{"1": 1})
	owner := r.participants["1"]
	profile := &Profile{Name: "player", OnePerKind: true,
		Wants: func(d *volumetric.Publication) bool { return d.Name == "desk" }}
	q := &JoinRequest{Room: "lab", Watched: "1", Profile: profile}
	if refused := q.checkWatched(r); refused == nil || refused.Code != signal.CodeNotFound {
		t.Errorf("a client that asks for an absent publication is refused with %v, expected not_found", refused)
	}
	owner.Publications = append(owner.Publications, numberedPublication(1, "desk", 1))
	if refused := q.checkWatched(r); refused != nil {
		t.Error(refused)
	}
	p := &participant{room: r, Presence: presence.Presence{Identity: "2"}, profile: profile, watched: "1",
		log: zap.NewNop()}
	for i, taken := range []bool{false, true} {
		if reason := p.withheld(owner.Publications[i]); (reason == "") != taken {
			t.Errorf("%s is withheld because %q", owner.Publications[i].Ref.Publication, reason)
		}
	}
}
