package description

import (
	"reflect"
	"strings"
	"testing"
)

// TestDataLine offers a line with data channels, and parses a browser's answer.
func TestDataLine(t *testing.T) {
	offer := &Description{
		SessionID: 1, Version: 1,
		Transport: Transport{Ufrag: "ufrag", Password: strings.Repeat("p", 22),
			Fingerprint: "sha-256 " + strings.TrimSuffix(strings.Repeat("AB:", 32), ":"), Role: RoleActpass},
		Lines: []Line{{MID: "0", Kind: KindData, Direction: DirectionSendRecv, DataPort: DataPort}},
	}
	read, err := Parse(offer.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, offer) {
		t.Errorf("the offer was read as\n%+v, expected\n%+v", read, offer)
	}
	text := strings.NewReplacer("a=setup:actpass", "a=setup:active").Replace(offer.Marshal())
	answer, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckAnswer(offer, answer); err != nil {
		t.Error(err)
	}
	rejected, err := Answer(offer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l := rejected.Lines[0]; !l.Rejected || l.Kind != KindData {
		t.Errorf("our own answer to it is %+v, expected a rejected line", l)
	}
	for name, line := range map[string]string{
		"without a port":  "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\n",
		"of another form": "m=application 9 UDP/DTLS/SCTP 5000\r\na=mid:0\r\na=sctp-port:5000\r\n",
		"of other media":  "m=text 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\na=sctp-port:5000\r\n",
	} {
		d, err := Parse("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" + line)
		if err != nil || !d.Lines[0].Rejected || d.Lines[0].DataPort != 0 {
			t.Errorf("a line %s: %+v, %v", name, d, err)
		}
	}
}
