package udp

import (
	"runtime"
	"testing"
)

// letter returns a run in a buffer of the pool.
func letter(m Message) ([]Message, *Buffer) {
	b := NewBuffer()
	m.Data = b[:copy(b[:], m.Data)]
	return []Message{m}, b
}

// TestPost adds runs for several peers to a Post, from two sockets, and expects them complete and in order.
func TestPost(t *testing.T) {
	forEach(t, func(t *testing.T, open func(Config) *Port) {
		from := []*Port{open(Config{Address: loopback4}), open(Config{Address: loopback4})}
		to := make([]*Port, 6)
		var post Post
		sent := make([][]Message, len(to))
		for round := range 4 {
			for i := range to {
				if to[i] == nil {
					to[i] = open(Config{Address: loopback4})
				}
				m := run(to[i].Address(), 10*round, 5, 300, 200)
				sent[i] = append(sent[i], m)
				messages, buffer := letter(m)
				post.Add(from[i%2].Sockets()[0], messages, buffer)
			}
		}
		post.Send()
		if !post.Empty() {
			t.Error("something is left in the post")
		}
		for i, p := range to {
			same(t, take(t, p, p.Sockets()[0], 20), from[i%2].Address(), sent[i]...)
		}
		for _, p := range from {
			stats := p.Stats()
			if stats.Sent != 60 || stats.SendErrors != 0 {
				t.Errorf("expected 60 sent: %+v", stats)
			}
		}
	})
}

// TestPostSendsWhatIsEnough fills a Post, which sends by one call if the system has such calls.
func TestPostSendsWhatIsEnough(t *testing.T) {
	from, to := opened(t)(Listen(Config{Address: loopback4})),
		opened(t)(Listen(Config{Address: loopback4, ReceiveBuffer: 1 << 20}))
	for _, test := range []struct{ runs, bytes int }{{callLength, 100}, {4, postBytes / 4}} {
		var post Post
		for i := range test.runs {
			if i > 0 && post.Empty() {
				t.Errorf("nothing waits after %d of %d runs of %d bytes", i, test.runs, test.bytes)
			}
			messages, buffer := letter(run(to.Address(), i, 1, test.bytes, test.bytes))
			post.Add(from.Sockets()[0], messages, buffer)
		}
		if !post.Empty() {
			t.Errorf("%d runs of %d bytes still wait", test.runs, test.bytes)
		}
		take(t, to, to.Sockets()[0], test.runs)
	}
	if stats := from.Stats(); runtime.GOOS == "linux" && stats.Sends != 2 {
		t.Errorf("%d runs took %d calls, expected 2", stats.Runs, stats.Sends)
	}
}
