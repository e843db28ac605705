package congestion

import "testing"

// TestClusters sends six probes of three packets with two packets between them, and one probe without packets: the
// latest ones are distinguished.
func TestClusters(t *testing.T) {
	var c Clusters
	if id := c.Of(65536); id != 0 {
		t.Errorf("a packet was sent in cluster %d where there was none", id)
	}
	const first = 65536
	for id := 1; id <= 6; id++ {
		c.Begin(id)
		for i := range int64(3) {
			c.Sent(first + int64(5*id) + i)
		}
	}
	c.Begin(7)
	for number := int64(first + 5); number < first+40; number++ {
		want := int(number-first) / 5
		if within := (number-first)%5 < 3; !within || want > 6 || want < 7-trains+1 {
			want = 0
		}
		if id := c.Of(number); id != want {
			t.Errorf("packet %d was sent in cluster %d, expected %d", number-first, id, want)
		}
	}
}
