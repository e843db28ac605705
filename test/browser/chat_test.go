package browser

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestChat exchanges messages between two pages and a native client, whose text looks like HTML.
func TestChat(t *testing.T) {
	tools(t)
	s := start(t, nil)
	publish(t, s, "ada")
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: "grace",
		MessageChannel: true, Publications: []volumetric.Publication{{
			Name: "voice", Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	v := begin(t, "chat.mjs", pageURL(s))
	v.expect("entered", nil)
	const hostile = `<img src=x onerror="throw new Error('run')"><script>alert(1)</script>`
	ctx := context.Background()
	for _, do := range []func() error{
		func() error { return session.SetAttributes(ctx, "", map[string]string{"name": "Grace <b>Hopper</b>"}) },
		func() error { return session.Mute(ctx, "", "voice", true) },
		func() error { return session.SendData(ctx, client.Data{Topic: "other", Text: "not chat"}) },
		func() error { return session.SendData(ctx, client.Data{Topic: "chat", Text: hostile}) },
		func() error {
			return session.SendData(ctx, client.Data{Topic: "chat", Text: strings.Repeat("long", 400)})
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	v.goOn()
	var read struct {
		Unread, After string
		Lines, Muted  []string
		Elements      int
		Overflow      bool
	}
	v.expect("read", &read)
	if read.Unread != "Chat (2)" || read.After != "Chat" || read.Elements != 0 || read.Overflow ||
		!slices.Equal(read.Muted, []string{"Grace <b>Hopper</b>"}) || len(read.Lines) != 2 ||
		read.Lines[0] != "Grace <b>Hopper</b>|"+hostile {
		t.Errorf("read %+v, expected two messages as text, and grace muted", read)
	}
	var sent struct {
		Open bool
		Last string
	}
	v.expect("sent", &sent)
	if !sent.Open || sent.Last != "A letter c in the field is textc" {
		t.Errorf("sent %+v, expected the panel open and the text with its last letter", sent)
	}
	v.expect("closed", nil)
	v.expect("done", nil)
	for _, want := range []string{"Hello from a phone", "A letter c in the field is textc"} {
		if m := <-session.Data(); m.Topic != "chat" || m.Text != want {
			t.Errorf("grace received %+v, expected %q", m, want)
		}
	}
}
