package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/e2e/puppet"
)

// floodData sends as many data messages as the websocket's own limits allow: long and short, reliable and lossy, to all
// and to names that do not exist, with numbers out of order, and changes attributes and muting in between.
func floodData(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	long, lossy := strings.Repeat("x", signal.MaxDataBytes), strings.Repeat("y", signal.MaxLossyBytes)
	send := func(i int) error {
		switch i % 8 {
		case 0:
			return m.Send(&signal.Data{Text: long})
		case 1:
			return m.Send(&signal.Data{Text: long, Seq: signal.MaxSeq - int64(i)})
		case 2:
			return m.Send(&signal.Data{Text: "x", To: []string{"nobody", "nobody else"}})
		case 3:
			return m.Send(&signal.Attributes{Attributes: map[string]string{"n": fmt.Sprint(i)}})
		case 4:
			return m.Send(&signal.Mute{Publication: load.Name, Muted: i%16 == 4})
		default:
			return m.Send(&signal.Data{Lossy: true, Text: lossy, Topic: fmt.Sprint(i % 100), Seq: int64(i + 1)})
		}
	}
	// 700 messages at once have 2.9 MB, and 350 per second 1.4 MB/s, below the limits that close the websocket.
	const burst, perSecond = 700, 350
	for i := range burst {
		if err := send(i); err != nil {
			t.Fatal(err)
		}
	}
	ticker := time.NewTicker(time.Second / perSecond)
	defer ticker.Stop()
	for i := range 3 * perSecond {
		<-ticker.C
		if err := send(i); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for _, e := range m.Errors() {
		if e.Code == signal.CodeLimit {
			refused++
		}
	}
	if c := m.Closing(); c != nil || refused == 0 {
		t.Errorf("the server ended with %v and refused %d messages with limit, expected refusals only", c, refused)
	}
	m.depart(t)
}
