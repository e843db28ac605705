package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/server"
)

// TestPagesOfOtherOrigins: a page of an allowed origin embeds the viewer, which enters its room, and uses the HTTP
// interfaces. A page of another origin, whose token grants the same, can do neither, and no page embeds the console.
func TestPagesOfOtherOrigins(t *testing.T) {
	tools(t)
	var embedding atomic.Pointer[string]
	pages := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, *embedding.Load())
	})
	friend, stranger := httptest.NewServer(pages), httptest.NewServer(pages)
	defer friend.Close()
	defer stranger.Close()
	keys := auth.Config{Keys: []string{"k:" + strings.Repeat("s", 32)}}
	s := start(t, func(o *server.Options) {
		o.Config.Server.Dev = false
		o.Config.Auth.Keys = keys.Keys
		o.Config.Signalling.AllowedOrigins = []string{friend.URL}
	})
	watcher := mint(t, keys, auth.Claims{Room: "demo", Identity: "eye", Subscribe: true})
	operator := mint(t, keys, auth.Claims{Identity: "op", Admin: true})
	page := fmt.Sprintf(`<iframe name="viewer" src="%s/?room=demo#token=%s"></iframe>`+
		`<iframe name="console" src="%s/console"></iframe>`, pageURL(s), watcher, pageURL(s))
	embedding.Store(&page)
	v := begin(t, "embed.mjs", pageURL(s), friend.URL, stranger.URL, operator)
	// The browser shows a page of its own in a frame that refuses its embedding.
	const refused = "chrome-error://chromewebdata/"
	for _, want := range []struct{ name, answers, viewer string }{
		{"friend", "200 200 404", pageURL(s) + "/?room=demo"},
		{"stranger", "refused refused refused", refused},
	} {
		var got struct{ Answers, Viewer, Console string }
		v.expect(want.name, &got)
		if got.Answers != want.answers || got.Viewer != want.viewer || got.Console != refused {
			t.Errorf("the page of the %s: %+v, expected %+v and no console", want.name, got, want)
		}
	}
	v.expect("done", nil)
}
